"""The parts that numpy's kernels are made of: 16-bit floats, packing, and memory."""

from __future__ import annotations

import numpy as np
import pytest

from qmanifest.kernels import careful, careful_halves
from qmanifest.kernels.careful_pack import pack_block
from qmanifest.kernels.careful_unpack import unpack_block
from qmanifest.kernels.reference import KERNELS as REFERENCE
from qmanifest.packings import u32_lsb
from qmanifest.packings.arrays import Float32, Stored, from_float32

EVERY_HALF = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = np.isfinite(EVERY_HALF)


def in_range(values: Float32) -> Float32:
    found: Float32 = values[np.abs(values) <= careful_halves.HALF_RANGE]
    return found.reshape(1, -1)


def near_halves(step: int) -> Float32:
    """Every finite float16, and the middle to the next, `step` float32 further."""
    halves = np.sort(EVERY_HALF[FINITE]).astype(np.float32)
    values = np.concatenate([halves, (halves[1:] + halves[:-1]) / 2])
    return in_range((values.view(np.int32) + np.int32(step)).view(np.float32))


@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
def test_halves_are_rounded_as_by_numpy(step: int) -> None:
    values = near_halves(step)
    expected = values.astype(np.float16)
    rounded = values.copy()
    careful_halves.round_to_halves(rounded)
    wide = expected.astype(np.float32).view(np.uint32)
    np.testing.assert_array_equal(rounded.view(np.uint32), wide)
    made = careful_halves.to_halves(values)
    np.testing.assert_array_equal(made.view(np.uint16), expected.view(np.uint16))


def test_any_floats_are_rounded_as_by_numpy() -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 32, 1 << 18, np.uint32)
    values = in_range(bits.view(np.float32))
    expected = values.astype(np.float16)
    made = careful_halves.to_halves(values)
    np.testing.assert_array_equal(made.view(np.uint16), expected.view(np.uint16))


def test_halves_are_widened_exactly() -> None:
    wide = careful_halves.widen_halves(EVERY_HALF)
    expected = EVERY_HALF[FINITE].astype(np.float32).view(np.uint32)
    np.testing.assert_array_equal(wide[FINITE].view(np.uint32), expected)
    assert (np.abs(wide[~FINITE]) >= careful_halves.BEYOND).all()
    assert (np.abs(wide[FINITE]) < careful_halves.BEYOND).all()


def test_bfloat16_is_rounded_as_elsewhere() -> None:
    bits = np.random.default_rng(2).integers(0, 1 << 32, 1 << 18, np.uint32)
    values = bits.view(np.float32)
    values = values[~np.isnan(values)]
    expected = from_float32(values, "BF16").array
    np.testing.assert_array_equal(careful_halves.to_bfloat16(values), expected)


@pytest.mark.parametrize("bits", range(2, 9))
def test_blocks_are_packed_as_by_the_packing(bits: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 1 << bits, 32 * 7, np.uint8)
    stream = u32_lsb.pack(codes, bits).view(np.uint8)
    np.testing.assert_array_equal(unpack_block(stream, bits), codes)
    np.testing.assert_array_equal(pack_block(codes.copy(), bits), stream)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_weights_at_an_odd_address(dtype: str) -> None:
    """As a view of a file's bytes may be: numpy must not take it for aligned."""
    values = np.random.default_rng(6).normal(size=(8, 128)).astype(np.float32)
    plain = from_float32(values, dtype)
    odd = np.frombuffer(b"-" + plain.array.tobytes(), np.uint8)[1:]
    weight = Stored(dtype, odd.view(plain.array.dtype).reshape(8, 128))
    assert not weight.array.flags.aligned
    found, expected = (
        each.quantize(weight, 5, 64) for each in (careful.KERNELS, REFERENCE)
    )
    np.testing.assert_array_equal(found.words, expected.words)


@pytest.mark.parametrize("bits", [3, 4, 8])
@pytest.mark.parametrize("group_size", [32, 128])
def test_several_blocks(
    bits: int, group_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More groups than a block has, and a last block that is not full."""
    from qmanifest.kernels import careful_dequantize, careful_quantize
    from qmanifest.schemes import Affine

    monkeypatch.setattr(careful_quantize, "_BLOCK", 1024)
    monkeypatch.setattr(careful_dequantize, "_BLOCK", 1024)
    weight = from_float32(
        np.random.default_rng(8).normal(size=(11, 256)).astype(np.float32), "F16"
    )
    found, expected = (
        each.quantize(weight, bits, group_size) for each in (careful.KERNELS, REFERENCE)
    )
    np.testing.assert_array_equal(found.words, expected.words)
    np.testing.assert_array_equal(found.scales.array, expected.scales.array)
    parts = {
        "codes": Stored("U32", found.words),
        "scales": found.scales,
        "biases": found.biases,
    }
    scheme = Affine(bits, group_size, ("F16",), "u32-lsb")
    rebuilt, again = (
        each.dequantize(scheme, parts, weight.shape)
        for each in (careful.KERNELS, REFERENCE)
    )
    np.testing.assert_array_equal(rebuilt.array, again.array)
