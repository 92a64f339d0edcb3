"""Quantizing, packing and the reference against MLX's own numbers.

README.md names the library, version and call behind every file.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from support.golden import assert_same, golden

from qmanifest.backends.reference import (
    dequantize,
    dequantize_affine,
    dequantize_microscaling,
)
from qmanifest.packings import u32_lsb
from qmanifest.packings.arrays import Stored, from_float32, to_float32
from qmanifest.schemes import Affine, Microscaling
from qmanifest.writing.quantize import quantize_affine

BITS: Final = (1, 2, 3, 4, 5, 6, 8)
GROUPS: Final = (32, 64, 128)
DTYPES: Final = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
NVFP4: Final = Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none")
MICROSCALING: Final = {
    "mlx_mxfp4": Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    "mlx_mxfp8": Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    "mlx_nvfp4": NVFP4,
}


def part(name: str, prefix: str, key: str) -> Stored:
    """Find a tensor of a file; bfloat16 was stored as U16."""
    found = golden(name)[f"{prefix}.{key}"]
    return Stored("BF16", found.array) if found.dtype == "U16" else found


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
    whole = dequantize(
        Affine(bits, group_size, (dtype,), "u32-lsb"), parts, codes.shape
    )
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
    scheme = Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb")
    assert_same(Stored("F32", dequantize(scheme, parts, expected.shape)), expected)
