"""Packings, quantizing and the reference against vectors of other implementations.

README.md names the library, version and call behind every file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from safetensors import deserialize, safe_open

from qmanifest.backends.reference import (
    dequantize,
    dequantize_affine,
    dequantize_microscaling,
)
from qmanifest.elements import E2M1, E4M3
from qmanifest.layouts import LAYOUTS, U8_NIBBLES, U32_LSB
from qmanifest.packings import PACKINGS, u8_nibbles, u32_lsb
from qmanifest.packings.arrays import Stored, from_float32, to_array, to_float32
from qmanifest.schemes import Affine, Microscaling
from qmanifest.writing.quantize import quantize_affine

DATA: Final = Path(__file__).parent / "data"
BITS: Final = (1, 2, 3, 4, 5, 6, 8)
GROUPS: Final = (32, 64, 128)
DTYPES: Final = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
PROOFS: Final = {
    U32_LSB.id: ("ct_pack_int32_v0.20.1", "mlx_affine_b3_g64"),
    U8_NIBBLES.id: ("modelopt_nvfp4", "ct_NVFP4A16"),
}
NVFP4: Final = Microscaling("e2m1", 16, "e4m3")
MICROSCALING: Final = {
    "mlx_mxfp4": Microscaling("e2m1", 32, "e8m0"),
    "mlx_mxfp8": Microscaling("e4m3", 32, "e8m0"),
    "mlx_nvfp4": NVFP4,
}


@cache
def golden(name: str) -> dict[str, Stored]:
    """Read a file of vectors."""
    data = (DATA / f"{name}.safetensors").read_bytes()
    return {
        key: Stored(
            tensor["dtype"],
            to_array(tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"])),
        )
        for key, tensor in deserialize(data)  # type: ignore[no-untyped-call] # has no types
    }


def part(name: str, prefix: str, key: str) -> Stored:
    """Find a tensor of a file; bfloat16 was stored as U16."""
    found = golden(name)[f"{prefix}.{key}"]
    return Stored("BF16", found.array) if found.dtype == "U16" else found


def table(values: tuple[float, ...]) -> npt.NDArray[np.float32]:
    return np.array(values, np.float32)


def assert_same(found: Stored, expected: Stored) -> None:
    """Compare two tensors bit for bit."""
    assert found.dtype == expected.dtype
    as_bits = f"<u{expected.array.itemsize}"
    np.testing.assert_array_equal(
        found.array.view(as_bits), expected.array.view(as_bits)
    )


def test_every_layout_has_a_packing_and_vectors_made_elsewhere() -> None:
    assert set(PACKINGS) == set(LAYOUTS) == set(PROOFS)
    for names in PROOFS.values():
        for name in names:
            with safe_open(DATA / f"{name}.safetensors", "np") as file:
                assert file.metadata(), f"{name} does not say what made it"


@pytest.mark.parametrize("shape", ["40x64", "37x35"])
@pytest.mark.parametrize("bits", range(1, 9))
def test_u32_lsb_is_the_stream_of_compressed_tensors(bits: int, shape: str) -> None:
    vectors = golden("ct_pack_int32_v0.20.1")
    signed = vectors[f"b{bits}_{shape}.codes_int8"].array
    codes = (signed.astype(np.int16) + 2 ** (bits - 1)).astype(np.uint8)
    words = vectors[f"b{bits}_{shape}.packed_dim1"].array.view("<u4")
    found = u32_lsb.unpack(words, bits, codes.shape[-1])
    np.testing.assert_array_equal(found, codes)
    # 35 codes fill no whole words; the peer filled the last word with zeros.
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 32)))
    packed = u32_lsb.pack(padded, bits)
    np.testing.assert_array_equal(packed[:, : words.shape[1]], words)


def test_u8_nibbles_are_those_of_modelopt() -> None:
    vectors = {key: stored.array for key, stored in golden("modelopt_nvfp4").items()}
    codes = u8_nibbles.unpack(vectors["weight"], 4)
    scales = table(E4M3.values)[vectors["weight_scale"]] * vectors["weight_scale_2"]
    rebuilt = table(E2M1.values)[codes] * np.repeat(scales, 16, axis=-1)
    np.testing.assert_array_equal(rebuilt, vectors["dequant_f32"])
    np.testing.assert_array_equal(u8_nibbles.pack(codes, 4), vectors["weight"])


def test_u8_nibbles_are_those_of_compressed_tensors() -> None:
    vectors = golden("ct_NVFP4A16")
    codes = u8_nibbles.unpack(vectors["weight_packed"].array, 4)
    divisor = vectors["weight_global_scale"].array
    scales = table(E4M3.values)[vectors["weight_scale"].array] / divisor
    rebuilt = table(E2M1.values)[codes] * np.repeat(scales, 16, axis=-1)
    assert_same(from_float32(rebuilt, "BF16"), vectors["dequant"])


@pytest.mark.parametrize("prefix", DTYPES)
@pytest.mark.parametrize("group_size", GROUPS)
@pytest.mark.parametrize("bits", BITS)
def test_affine_is_that_of_mlx(bits: int, group_size: int, prefix: str) -> None:
    name = f"mlx_affine_b{bits}_g{group_size}"
    source, dtype = golden("mlx_input_w")["w"], DTYPES[prefix]
    made = quantize_affine(from_float32(source.array, dtype), bits, group_size)
    words = part(name, prefix, "weight")
    assert_same(Stored("U32", u32_lsb.pack(made.codes, bits)), words)
    assert_same(made.scales, part(name, prefix, "scales"))
    assert_same(made.biases, part(name, prefix, "biases"))

    codes = u32_lsb.unpack(words.array, bits)
    expected = part(name, prefix, "dequant")
    rebuilt = dequantize_affine(codes, made.scales, made.biases, group_size)
    assert_same(rebuilt, expected)
    parts = {"codes": words, "scales": made.scales, "biases": made.biases}
    whole = dequantize(Affine(bits, group_size, (dtype,)), parts, codes.shape)
    np.testing.assert_array_equal(whole, to_float32(expected))


@pytest.mark.parametrize("prefix", ["f32", "bf16"])
@pytest.mark.parametrize("name", MICROSCALING)
def test_microscaling_is_that_of_mlx(name: str, prefix: str) -> None:
    scheme, expected = MICROSCALING[name], part(name, prefix, "dequant_f32")
    words, scales = part(name, prefix, "weight"), part(name, prefix, "scales")
    codes = u32_lsb.unpack(words.array, scheme.bits)
    rebuilt = dequantize_microscaling(codes, scales.array, scheme)
    assert_same(Stored("F32", rebuilt), expected)
    whole = dequantize(scheme, {"codes": words, "scales": scales}, expected.shape)
    assert_same(Stored("F32", whole), expected)
    rounded = part(name, prefix, "dequant_default_bf16")
    assert_same(from_float32(rebuilt, "BF16"), rounded)


def test_global_scale_is_that_of_mlx() -> None:
    roles = {"codes": "weight", "scales": "scales", "global_scale": "global_scale"}
    parts = {role: part("mlx_nvfp4", "gs", key) for role, key in roles.items()}
    expected = part("mlx_nvfp4", "gs", "dequant_f32")
    scheme = Microscaling("e2m1", 16, "e4m3", global_scale="amax")
    assert_same(Stored("F32", dequantize(scheme, parts, expected.shape)), expected)


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.iterdir()))
def test_no_vector_file_is_unused(name: str) -> None:
    used: set[Any] = {"mlx_input_w", *MICROSCALING, *sum(PROOFS.values(), ())}
    used |= {f"mlx_affine_b{bits}_g{group}" for bits in BITS for group in GROUPS}
    assert name in used
