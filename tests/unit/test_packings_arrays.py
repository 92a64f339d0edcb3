"""Tensors in numpy: dtypes, bytes and rounding."""

from __future__ import annotations

import numpy as np
import pytest

from qmanifest.dtypes import DTYPES, Dtype
from qmanifest.errors import PackingError
from qmanifest.packings.arrays import (
    Stored,
    from_float32,
    row_blocks,
    storage_dtype,
    to_array,
    to_bytes,
    to_float32,
)

WHOLE_BYTES = [row for row in DTYPES.values() if row.bits % 8 == 0]


@pytest.mark.parametrize("row", WHOLE_BYTES, ids=lambda row: row.code)
def test_storage_is_as_wide_as_the_dtype(row: Dtype) -> None:
    assert storage_dtype(row.code).itemsize * 8 == row.bits


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "float16", ""])
def test_dtype_without_an_array(dtype: str) -> None:
    with pytest.raises(PackingError, match="no numpy array holds"):
        storage_dtype(dtype)


def test_bytes_are_little_endian() -> None:
    array = to_array("U32", (1, 2), bytes([1, 2, 3, 4, 5, 0, 0, 0]))
    np.testing.assert_array_equal(array, [[0x04030201, 5]])
    assert to_bytes(Stored("U32", array.T.copy().T)) == bytes([1, 2, 3, 4, 5, 0, 0, 0])


def test_scalar_and_empty_tensors() -> None:
    assert to_array("F32", (), b"\0\0\x80?") == 1
    assert to_array("F32", (0, 4), b"").shape == (0, 4)
    assert to_float32(Stored("BF16", to_array("BF16", (), b"\x80?"))).shape == ()


@pytest.mark.parametrize("length", [0, 7, 9])
def test_buffer_of_another_length(length: int) -> None:
    with pytest.raises(PackingError, match=f"takes 8 bytes, the buffer has {length}"):
        to_array("BF16", (2, 2), bytes(length))


@pytest.mark.parametrize("shape", [(-1,), (-2, -2), (0, -1)])
def test_shape_that_does_not_exist(shape: tuple[int, ...]) -> None:
    with pytest.raises(PackingError, match="takes"):
        to_array("U8", shape, bytes(max(0, shape[0] * shape[-1])))


def test_array_of_another_dtype() -> None:
    with pytest.raises(PackingError, match="F16 tensor is a numpy array of float16"):
        Stored("F16", np.zeros(3, np.float32))


BF16_CASES = {
    # id: float32 bits, bfloat16 bits
    "exact": (0x3F800000, 0x3F80),
    "tie to even, down": (0x3F808000, 0x3F80),
    "tie to even, up": (0x3F818000, 0x3F82),
    "just above a tie": (0x3F808001, 0x3F81),
    "largest overflows": (0x7F7FFFFF, 0x7F80),
    "negative": (0xBF818000, 0xBF82),
    "subnormal": (0x00008001, 0x0001),
    "infinity": (0xFF800000, 0xFF80),
    "NaN in the lower half": (0x7F800001, 0x7FC0),
    "NaN of all ones": (0xFFFFFFFF, 0xFFFF),
}


@pytest.mark.parametrize(("wide", "narrow"), BF16_CASES.values(), ids=BF16_CASES)
def test_bfloat16_rounding(wide: int, narrow: int) -> None:
    for shape in ((), (1,)):
        values = np.full(shape, wide, np.uint32).view(np.float32)
        assert from_float32(values, "BF16").array == narrow


def test_every_bfloat16_survives() -> None:
    every = Stored("BF16", np.arange(1 << 16, dtype=np.uint16))
    values = to_float32(every)
    kept = ~np.isnan(values)
    again = from_float32(values, "BF16").array
    np.testing.assert_array_equal(again[kept], every.array[kept])
    assert np.isnan(to_float32(Stored("BF16", again[~kept]))).all()


def test_too_large_for_float16_is_infinite() -> None:
    assert np.isinf(from_float32(np.full(1, 7e4, np.float32), "F16").array).all()


def test_only_floats_are_widened_and_rounded() -> None:
    with pytest.raises(PackingError, match="U8"):
        to_float32(Stored("U8", np.zeros(1, np.uint8)))
    with pytest.raises(PackingError, match="F64"):
        from_float32(np.zeros(1, np.float32), "F64")


def test_stored_knows_its_size() -> None:
    stored = Stored("F16", np.zeros((2, 3), np.float16))
    assert (stored.shape, stored.nbytes) == ((2, 3), 12)


def test_blocks_are_whole_rows_of_bounded_size() -> None:
    assert list(row_blocks(5, 10, 25)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(row_blocks(2, 100, 25)) == [slice(0, 1), slice(1, 2)]
    assert list(row_blocks(0, 10, 25)) == []
    assert list(row_blocks(3, 0, 25)) == [slice(0, 3)]
