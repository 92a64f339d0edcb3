"""Every packing against words that another implementation packed.

Where a file has the codes too, both directions are compared with it. Where it has none,
the codes are proved by the weight that its owner rebuilt (`test_golden_formats`), and
here they must pack into the same words again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from support.formats import FORMATS, gptq_files
from support.golden import DATA, assert_same, golden, metadata

from qmanifest.elements import ELEMENTS
from qmanifest.layouts import FLAT, LAYOUTS
from qmanifest.packings import PACKINGS, pack, u32_lsb, unpack
from qmanifest.packings.arrays import Codes, Stored, storage_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.tensors import Shape

CT: Final = {"0.20.1": "i32-lsb", "0.17.1": "i32-whole"}
"""What versions of compressed-tensors pack int32 words as."""


class Proof(NamedTuple):
    """Words of a file, and the codes in them where it has those too."""

    layout: str
    file: str
    key: str
    bits: int
    shape: Shape
    codes: Codes | None = None
    seen_as: str | None = None
    """The dtype that other formats store the same bytes as."""


def with_codes(
    layout: str, file: str, key: str, bits: int, codes: npt.NDArray[Any]
) -> Proof:
    return Proof(layout, file, key, bits, codes.shape, codes.astype(np.uint8))


def of_compressed_tensors() -> Iterator[Proof]:
    for version, layout in CT.items():
        file = f"ct_pack_int32_v{version}"
        for key, signed in golden(file).items():
            name, _, kind = key.partition(".")
            if kind == "codes_int8":
                bits = int(name[1])
                codes = signed.array.astype(np.int16) + 2 ** (bits - 1)
                for dim, suffix in ((0, "-stacked"), (1, "")):
                    words = f"{name}.packed_dim{dim}"
                    yield with_codes(layout + suffix, file, words, bits, codes)


def of_gptqmodel() -> Iterator[Proof]:
    for file in gptq_files():
        bits, vectors = int(file[6]), golden(file)
        layout = "i32-planes" if "planar" in file else "i32-lsb"
        codes = vectors["codes_in_out_u8"].array.T
        zeros = vectors["zeros_true_u8"].array
        yield with_codes(f"{layout}-down", file, "qweight", bits, codes)
        yield with_codes(layout, file, "qzeros_v2", bits, zeros)
        if layout == "i32-lsb":  # seen as a matrix of inputs by outputs
            yield with_codes("i32-lsb-across", file, "qzeros_v2", bits, zeros.T)


def of_autoawq() -> Iterator[Proof]:
    gemm, codes = golden("awq_gemm_b4_g64"), "codes_out_in_u8"
    turned, zeros = gemm["codes_in_out_u8"].array.T, gemm["zeros_u8"].array
    yield with_codes("i32-awq-across", "awq_gemm_b4_g64", "qweight", 4, turned)
    yield with_codes("i32-awq", "awq_gemm_b4_g64", "qzeros", 4, zeros)
    for layout, form in (("i32-lsb", "gemv"), ("i16-awq-fast", "gemv_fast")):
        file = f"awq_{form}_b4_g64"
        yield with_codes(layout, file, "qweight", 4, golden(file)[codes].array)


def of_modelopt() -> Iterator[Proof]:
    file = "modelopt_int4_awq_pack"
    codes = golden(file)["codes_int8"].array & 15
    yield with_codes("u8-nibbles-stacked", file, "weight", 4, codes)


def of_torch() -> Iterator[Proof]:
    every = np.arange(256, dtype=np.uint8).reshape(4, 64)
    for element in ("e4m3", "e5m2"):
        yield with_codes(f"f8-{element}", "torch_float8", element, 8, every)


def of_bitsandbytes() -> Iterator[Proof]:
    # The nibbles of the bytes, as the library's source has them.
    octets = golden("bnb_nf4_storages")["U8.weight"].array.reshape(-1)
    codes = np.stack([octets >> 4, octets & 15], axis=-1).reshape(16, 64)
    for layout in FLAT:
        key = f"{layout.word_dtype}.weight"
        yield with_codes(layout.id, "bnb_nf4_storages", key, 4, codes)


PROOFS: Final = (
    *of_compressed_tensors(),
    *of_gptqmodel(),
    *of_autoawq(),
    *of_modelopt(),
    *of_torch(),
    *of_bitsandbytes(),
    Proof("u8-nibbles", "modelopt_nvfp4", "weight", 4, (32, 128)),
    Proof("u8-nibbles", "ct_NVFP4A16", "weight_packed", 4, (72, 256)),
    Proof("u8-lsb", "ct_MXFP6A16", "weight_packed", 6, (72, 256)),
    Proof("i8-lsb", "ct_MXFP4A16", "weight_packed", 4, (72, 256), seen_as="I8"),
    Proof("i8", "ct_W8A8", "weight", 8, (72, 256)),
    Proof("i8", "torchao_intx4", "0._weight_qdata", 4, (64, 256)),
    Proof("u8", "hqq_b8_axis1", "W_q", 8, (96, 64)),
    Proof("u8-split-high", "hqq_b4_axis1", "W_q", 4, (96, 64)),
    Proof("i32-split-high", "hqq_b3_axis0", "W_q", 3, (64, 96)),
    Proof("u8-split-low", "quanto_qint2", "0.weight._data._data", 2, (96, 128)),
    Proof("u8-nibbles-blocks", "gptoss_mxfp4", "gate_up_proj_blocks", 4, (2, 6, 96)),
)
MLX: Final = {
    *("mlx_input_w", "mlx_mxfp4", "mlx_mxfp8", "mlx_nvfp4"),
    *(f"mlx_affine_b{b}_g{g}" for b in (1, 2, 3, 4, 5, 6, 8) for g in (32, 64, 128)),
}
"""Files of `test_golden_mlx`, which prove `u32-lsb`."""


@pytest.mark.parametrize(
    "proof", PROOFS, ids=lambda each: f"{each.layout}-{each.file}-{each.key}"
)
def test_words_are_those_of_the_owner(proof: Proof) -> None:
    words = golden(proof.file)[proof.key]
    if proof.seen_as:
        words = Stored(proof.seen_as, words.array.view(storage_dtype(proof.seen_as)))
    found = unpack(proof.layout, words.array, proof.bits, proof.shape)
    assert found.dtype == np.uint8
    if proof.codes is not None:
        np.testing.assert_array_equal(found, proof.codes)
    packed = pack(proof.layout, found, proof.bits)
    assert_same(Stored(words.dtype, packed), words)


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


@pytest.mark.parametrize("element", ["e4m3", "e5m2"])
def test_eight_bit_floats_are_torch_s(element: str) -> None:
    vectors = golden("torch_float8")
    ours = np.array(ELEMENTS[element].values, np.float32)[vectors[element].array]
    np.testing.assert_array_equal(ours, vectors[f"{element}.float32"].array)


def test_every_layout_has_a_packing_and_vectors_made_elsewhere() -> None:
    assert set(PACKINGS) == set(LAYOUTS)
    assert {"u32-lsb", *(proof.layout for proof in PROOFS)} == set(LAYOUTS)


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.iterdir()))
def test_every_file_is_used(name: str) -> None:
    files = {proof.file for proof in PROOFS} | {row.file for row in FORMATS}
    assert name in {*files, *MLX, "gguf_blocks", "bnb_dynamic_map_signed_f32"}


@pytest.mark.parametrize(
    "path", sorted(DATA.glob("*.safetensors")), ids=lambda p: p.stem
)
def test_every_file_says_what_made_it(path: Any) -> None:  # noqa: ANN401 - a path
    assert metadata(path.stem) or path.stem == "mlx_input_w"
    assert path.stat().st_size < 100_000
