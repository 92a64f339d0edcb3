"""Quantizing: the rule on chosen groups, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from qmanifest.backends.reference import dequantize_affine
from qmanifest.errors import PackingError
from qmanifest.packings.arrays import Stored, from_float32, to_float32
from qmanifest.writing.quantize import LEAST_SCALE, quantize_affine


def weight(*rows: list[float], dtype: str = "F32") -> Stored:
    return from_float32(np.array(rows, np.float32), dtype)


def test_end_further_from_zero_is_the_bias() -> None:
    made = quantize_affine(weight([-3, 0, 1, 12], [-12, -1, 0, 3]), 4, 4)
    np.testing.assert_array_equal(made.biases.array, [[12], [-12]])
    np.testing.assert_array_equal(made.scales.array, [[-1], [1]])
    np.testing.assert_array_equal(made.codes, [[15, 12, 11, 0], [0, 11, 12, 15]])


def test_zero_keeps_a_code_of_its_own() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(64, 32)).astype(np.float32)
    values[:, 5] = 0
    for bits in (2, 3, 4, 5, 6, 8):
        made = quantize_affine(Stored("F32", values), bits, 32)
        steps = -made.biases.array / made.scales.array
        np.testing.assert_array_equal(made.codes[:, 5], np.rint(steps)[:, 0])


def test_group_of_equal_weights_has_the_least_scale() -> None:
    made = quantize_affine(weight([0] * 4, [3.25] * 4, [-2] * 4), 4, 4)
    scales, biases = made.scales.array[:, 0], made.biases.array[:, 0]
    np.testing.assert_array_equal(made.codes, np.zeros((3, 4)))
    np.testing.assert_array_equal(biases, [0, 3.25, -2])
    np.testing.assert_allclose(np.abs(scales), LEAST_SCALE, rtol=1e-6)


def test_one_bit_keeps_both_ends() -> None:
    made = quantize_affine(weight([-3, 0.9, 1, 5], [2, 2, 2, 2]), 1, 4)
    np.testing.assert_array_equal(made.codes, [[0, 0, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(made.scales.array, [[8], [LEAST_SCALE]])
    np.testing.assert_array_equal(made.biases.array, [[-3], [2]])


def test_codes_are_made_before_scales_are_rounded() -> None:
    rng = np.random.default_rng(1)
    source = Stored("F32", rng.normal(size=(16, 64)).astype(np.float32))
    wide, narrow = (quantize_affine(source, 8, 32, dtype) for dtype in ("F32", "BF16"))
    np.testing.assert_array_equal(wide.codes, narrow.codes)
    rounded = from_float32(to_float32(wide.scales), "BF16")
    np.testing.assert_array_equal(rounded.array, narrow.scales.array)


def test_more_groups_than_one_block() -> None:
    values = np.random.default_rng(2).normal(size=(5, 1 << 17)).astype(np.float32)
    whole = quantize_affine(Stored("F32", values), 4, 64)
    for row, one in enumerate(values):
        alone = quantize_affine(Stored("F32", one[None]), 4, 64)
        np.testing.assert_array_equal(whole.codes[row : row + 1], alone.codes)
        np.testing.assert_array_equal(
            whole.scales.array[row : row + 1], alone.scales.array
        )


@pytest.mark.parametrize("shape", [(0, 64), (2, 0, 64), (64,), (2, 3, 64)])
def test_every_rank_and_empty(shape: tuple[int, ...]) -> None:
    made = quantize_affine(Stored("F32", np.ones(shape, np.float32)), 4, 32)
    assert made.codes.shape == shape
    assert made.scales.shape == made.biases.shape == (*shape[:-1], 2)


def test_any_memory_layout_and_nothing_changed() -> None:
    values = np.random.default_rng(3).normal(size=(8, 64)).astype(np.float32)
    straight = quantize_affine(Stored("F32", values.copy()), 4, 32)
    before = values.copy()
    odd = quantize_affine(Stored("F32", np.asfortranarray(values)), 4, 32)
    np.testing.assert_array_equal(straight.codes, odd.codes)
    quantize_affine(Stored("F32", values), 4, 32)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_not_finite_is_refused_with_its_count(dtype: str, bits: int) -> None:
    values = np.zeros((6, 64), np.float32)
    values[0, 3] = np.nan
    values[2, 5:7] = np.inf
    values[5, 63] = -np.inf
    with pytest.raises(PackingError, match="4 of 384 values are NaN or infinite"):
        quantize_affine(from_float32(values, dtype), bits, 32)


def test_not_finite_is_counted_over_all_blocks() -> None:
    values = np.zeros((3, 1 << 18), np.float32)
    values[0, 0] = values[2, -1] = np.nan
    with pytest.raises(PackingError, match="2 of 786432 values"):
        quantize_affine(Stored("F32", values), 4, 64)


@pytest.mark.parametrize("bits", [1, 4])
def test_span_that_overflows_is_refused(bits: int) -> None:
    huge = weight([3e38, -3e38], [1, 2])
    with pytest.raises(PackingError, match="1 of 2 groups span more than a F32 scale"):
        quantize_affine(huge, bits, 2)
    with pytest.raises(PackingError, match="span more than a F16 scale"):
        quantize_affine(weight([1e6, 2e6]), bits, 2, "F16")


@pytest.mark.parametrize("bits", [0, 9])
def test_bits_that_do_not_exist(bits: int) -> None:
    with pytest.raises(PackingError, match="codes have"):
        quantize_affine(weight([1, 2]), bits, 2)


@pytest.mark.parametrize("group_size", [0, -2, 3, 8])
def test_group_that_does_not_divide(group_size: int) -> None:
    with pytest.raises(PackingError, match="rows of 4 values are not whole groups"):
        quantize_affine(weight([1, 2, 3, 4]), 4, group_size)


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(PackingError, match="a weight to quantize is"):
        quantize_affine(Stored("I8", np.zeros((1, 4), np.int8)), 4, 4)
    with pytest.raises(PackingError, match="a scale to quantize is"):
        quantize_affine(weight([1, 2]), 4, 2, "U8")
    with pytest.raises(PackingError, match="rows of 0 values"):
        quantize_affine(Stored("F32", np.zeros((), np.float32)), 4, 1)


def test_error_is_at_most_half_a_step_inside_the_range() -> None:
    values = np.random.default_rng(4).normal(size=(64, 64)).astype(np.float32)
    made = quantize_affine(Stored("F32", values), 8, 32)
    again = dequantize_affine(made.codes, made.scales, made.biases, 32).array
    step = np.repeat(np.abs(made.scales.array), 32, axis=-1)
    # The adjusted scale can leave the other end half a step outside of the codes.
    assert (np.abs(again - values) <= step * 1.001).all()
    assert (np.abs(again - values) <= step * 0.5001).mean() > 0.95
