"""The numpy reference: the rule of each scheme, and parts that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from qmanifest.backends.reference import (
    dequantize,
    dequantize_affine,
    dequantize_microscaling,
    dequantize_zero_point,
    matmul,
)
from qmanifest.errors import BackendError, PackingError
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Codes, Stored, from_float32, to_float32
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

MXFP4 = Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none")
MXFP8 = Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none")
NVFP4 = Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none")
NVFP4_GLOBAL = Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb")


def floats(*rows: list[float], dtype: str = "F32") -> Stored:
    return from_float32(np.array(rows, np.float32), dtype)


def codes_of(*shape: int, bits: int = 4) -> Codes:
    return np.random.default_rng(0).integers(0, 2**bits, shape, np.uint8)


def test_affine_is_scale_times_code_plus_bias() -> None:
    codes = np.array([[0, 1, 2, 3]], np.uint8)
    made = dequantize_affine(codes, floats([2, -1]), floats([10, 0.5]), 2)
    np.testing.assert_array_equal(made.array, [[10, 12, -1.5, -2.5]])
    assert made.dtype == "F32"


@pytest.mark.parametrize(("dtype", "expected"), [("F16", 1.0), ("F32", 1.0004883)])
def test_affine_rounds_product_and_sum_apart(dtype: str, expected: float) -> None:
    # 3 * 0.33349609375 = 1.00048828125, a tie in float16, goes down to 1.
    scales, biases = floats([0.33349609375], dtype=dtype), floats([0], dtype=dtype)
    made = dequantize_affine(np.full((1, 4), 3, np.uint8), scales, biases, 4)
    np.testing.assert_array_equal(made.array, np.full((1, 4), expected, np.float32))
    # With one rounding, the sum would be 2**-11.
    biases = floats([-1], dtype=dtype)
    made = dequantize_affine(np.full((1, 4), 3, np.uint8), scales, biases, 4)
    assert (to_float32(made) == (0 if dtype == "F16" else 2.0**-11)).all()


def test_affine_casts_after_rounding() -> None:
    codes, scales, biases = codes_of(2, 8), floats([0.3], [7]), floats([1], [-9])
    wide = dequantize_affine(codes, scales, biases, 8)
    narrow = dequantize_affine(codes, scales, biases, 8, "BF16")
    np.testing.assert_array_equal(narrow.array, from_float32(wide.array, "BF16").array)
    scales, biases = (from_float32(each.array, "F16") for each in (scales, biases))
    widened = dequantize_affine(codes, scales, biases, 8, "F32")
    expected = to_float32(dequantize_affine(codes, scales, biases, 8))
    np.testing.assert_array_equal(widened.array, expected)


def test_last_group_may_be_short() -> None:
    codes = np.ones((1, 5), np.uint8)
    made = dequantize_affine(codes, floats([1, 2]), floats([0, 0]), 4)
    np.testing.assert_array_equal(made.array, [[1, 1, 1, 1, 2]])


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "U8"])
def test_zero_point_is_in_code_units(dtype: str) -> None:
    zeros = floats([3, 8], dtype=dtype) if dtype != "U8" else None
    zeros = zeros or Stored("U8", np.array([[3, 8]], np.uint8))
    codes = np.array([[0, 3, 8, 15]], np.uint8)
    made = dequantize_zero_point(codes, floats([0.5, -2]), zeros, 2)
    np.testing.assert_array_equal(made.array, [[-1.5, 0, 0, -14]])


def test_zero_point_is_rounded_once() -> None:
    codes = np.full((1, 4), 3, np.uint8)
    zeros = floats([0], dtype="F16")
    made = dequantize_zero_point(codes, floats([0.33349609375], dtype="F16"), zeros, 4)
    assert made.dtype == "F16"
    assert (made.array == 1).all()
    half = dequantize_zero_point(codes, floats([0.1]), floats([0.5]), 4, "BF16")
    assert (to_float32(half) == 0.25).all()


def test_microscaling_value_by_value() -> None:
    codes = np.arange(32, dtype=np.uint8)[None] % 16
    made = dequantize_microscaling(codes, np.array([[128]], np.uint8), MXFP4)
    np.testing.assert_array_equal(made[0, :8], [0, 1, 2, 3, 4, 6, 8, 12])
    np.testing.assert_array_equal(made[0, 8:16], -made[0, :8])
    assert np.signbit(made[0, 8])


def test_smallest_power_of_two_is_not_flushed() -> None:
    codes = np.full((1, 32), 2, np.uint8)
    made = dequantize_microscaling(codes, np.zeros((1, 1), np.uint8), MXFP4)
    assert (made == 2.0**-127).all()


@pytest.mark.parametrize(
    ("scheme", "byte"), [(MXFP4, 255), (MXFP8, 255), (NVFP4, 127), (NVFP4, 255)]
)
def test_not_a_number_in_a_scale(scheme: Microscaling, byte: int) -> None:
    codes = np.ones((1, 32), np.uint8)
    scales = np.full((1, 32 // scheme.group_size), byte, np.uint8)
    assert np.isnan(dequantize_microscaling(codes, scales, scheme)).all()


def test_not_a_number_in_an_element() -> None:
    codes = np.array([[0x7F, 0xFF, 0x7E, 0xFE] * 8], np.uint8)
    made = dequantize_microscaling(codes, np.full((1, 1), 127, np.uint8), MXFP8)
    np.testing.assert_array_equal(made[0, :4], [np.nan, np.nan, 448, -448])


def test_microscaling_refuses_a_code_of_no_element() -> None:
    with pytest.raises(PackingError, match="code 16"):
        dequantize_microscaling(
            np.full((1, 32), 16, np.uint8), np.zeros((1, 1), np.uint8), MXFP4
        )


def test_matmul_is_in_float64() -> None:
    x = np.array([[1e30, 1, -1e30]], np.float32)
    weight = np.array([[1, 1, 1], [0, 2, 0]], np.float16)
    product = matmul(x, weight)
    assert product.dtype == np.float64
    np.testing.assert_array_equal(product, [[1e30 + 1 - 1e30, 2]])
    assert matmul(np.zeros((2, 0, 3), np.float32), weight).shape == (2, 0, 2)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("pack", ["u32-lsb", "u8-nibbles"])
def test_whole_weight_of_any_rank(pack: str, lead: tuple[int, ...]) -> None:
    codes = codes_of(*lead, 4, 64)
    numbers = np.random.default_rng(1).normal(size=(2, *lead, 4, 2)).astype(np.float32)
    scales, biases = (from_float32(each, "F16") for each in numbers)
    packing = PACKINGS[pack]
    words = Stored(packing.layout.word_dtype, packing.pack(codes, 4))
    parts = {"codes": words, "scales": scales, "biases": biases}
    made = dequantize(Affine(4, 32, ("F16",), pack), parts, codes.shape)
    alone = dequantize_affine(codes, scales, biases, 32)
    np.testing.assert_array_equal(made, to_float32(alone))
    parts["zeros"] = Stored("U8", codes_of(*lead, 4, 2))
    zero_point = ZeroPoint(4, 32, ("F16",), ("U8",), pack)
    made = dequantize(zero_point, parts, codes.shape)
    alone = dequantize_zero_point(codes, scales, parts["zeros"], 32)
    np.testing.assert_array_equal(made, to_float32(alone))


def test_more_rows_than_one_block() -> None:
    codes = codes_of(600, 1024)
    numbers = np.random.default_rng(1).normal(size=(2, 600, 16)).astype(np.float32)
    scales, biases = (Stored("F32", each) for each in numbers)
    words = Stored("U32", PACKINGS["u32-lsb"].pack(codes, 4))
    parts = {"codes": words, "scales": scales, "biases": biases}
    made = dequantize(Affine(4, 64, ("F32",), "u32-lsb"), parts, codes.shape)
    alone = dequantize_affine(codes, scales, biases, 64)
    np.testing.assert_array_equal(made, alone.array)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_one_global_scale_per_expert(lead: tuple[int, ...]) -> None:
    codes = codes_of(*lead, 4, 32)
    amax = np.arange(1, 1 + np.prod(lead, dtype=int), dtype=np.float32) * 2688
    parts = {
        "codes": Stored("U32", PACKINGS["u32-lsb"].pack(codes, 4)),
        "scales": Stored("U8", codes_of(*lead, 4, 2, bits=6)),
        "global_scale": Stored("F32", amax.reshape(lead or (1,))),
    }
    made = dequantize(NVFP4_GLOBAL, parts, codes.shape)
    plain = dequantize(NVFP4, parts, codes.shape)
    factors = (amax / np.float32(2688)).reshape(*lead, 1, 1)
    np.testing.assert_array_equal(made, plain * factors)


AFFINE = Affine(4, 32, ("F16", "BF16"), "u32-lsb")
GOOD = {
    "codes": Stored("U32", np.zeros((2, 8), np.uint32)),
    "scales": Stored("F16", np.ones((2, 2), np.float16)),
    "biases": Stored("F16", np.ones((2, 2), np.float16)),
}
BAD_PARTS = {
    "codes are I32": ("codes", Stored("I32", np.zeros((2, 8), np.int32))),
    "codes are U32 [2, 9]": ("codes", Stored("U32", np.zeros((2, 9), np.uint32))),
    "scales are F16 [2, 1]": ("scales", Stored("F16", np.ones((2, 1), np.float16))),
    "scales are U8": ("scales", Stored("U8", np.ones((2, 2), np.uint8))),
    "scales are F16 [4]": ("scales", Stored("F16", np.ones(4, np.float16))),
    "must have one dtype": ("biases", Stored("F32", np.ones((2, 2), np.float32))),
}


@pytest.mark.parametrize(("role", "part"), BAD_PARTS.values(), ids=BAD_PARTS)
def test_part_that_does_not_fit(
    role: str, part: Stored, request: pytest.FixtureRequest
) -> None:
    expected = request.node.callspec.id.replace("[", r"\[")
    with pytest.raises(BackendError, match=expected):
        dequantize(AFFINE, {**GOOD, role: part}, (2, 64))


def test_part_that_is_absent() -> None:
    parts = {role: part for role, part in GOOD.items() if role != "biases"}
    with pytest.raises(BackendError, match="needs a tensor of biases"):
        dequantize(AFFINE, parts, (2, 64))


def test_shape_that_no_words_hold() -> None:
    with pytest.raises(BackendError, match="a row of 63 codes of 4 bits"):
        dequantize(AFFINE, GOOD, (2, 63))


@pytest.mark.parametrize("shape", [(), (2, 64, 0)])
def test_shape_of_nothing(shape: tuple[int, ...]) -> None:
    with pytest.raises(BackendError):
        dequantize(AFFINE, GOOD, shape)


def test_float_that_was_not_promised_still_computes() -> None:
    parts = dict(GOOD)
    for role in ("scales", "biases"):
        parts[role] = Stored("F32", np.ones((2, 2), np.float32))
    assert (dequantize(AFFINE, parts, (2, 64)) == 1).all()


def test_numbers_that_do_not_fit_the_codes() -> None:
    codes = codes_of(2, 8)
    good, short = floats([1], [1]), floats([1])
    with pytest.raises(BackendError, match=r"found \[1, 1\]"):
        dequantize_affine(codes, short, short, 8)
    with pytest.raises(BackendError, match=r"found \[1, 1\]"):
        dequantize_zero_point(codes, good, short, 8)
    with pytest.raises(BackendError, match="scales are F32, biases F16"):
        dequantize_affine(codes, good, from_float32(good.array, "F16"), 8)
