"""Laws of every packing, over codes of any shape and width."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmanifest.errors import LayoutError
from qmanifest.layouts import LAYOUTS
from qmanifest.packings import PACKINGS, ROWS, Packing, RowPacking, pack, unpack
from qmanifest.packings.arrays import (
    Codes,
    Stored,
    from_float32,
    storage_dtype,
    to_float32,
)

STREAMS = ("u32-lsb", "u8-nibbles", "i32-lsb", "u8-lsb", "i8-lsb")


@st.composite
def code_matrices(draw: st.DrawFn, packing: RowPacking) -> tuple[Codes, int]:
    """`(codes, bits)`: up to 4 rows that the layout takes, every code in range."""
    bits = draw(st.sampled_from(packing.layout.bits))
    layout = packing.layout
    unit = max(layout.unit, layout.word_bits // math.gcd(bits, layout.word_bits))
    unit = draw(st.sampled_from([1, unit])) if layout.padded else unit
    shape = (draw(st.integers(0, 4)), unit * draw(st.integers(0, 5)))
    in_range = st.integers(0, 2**bits - 1)
    return draw(hnp.arrays(np.uint8, shape, elements=in_range)), bits


def textbook_bits(octets: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.int64]:
    """Read rows of bytes as a little-endian stream, one bit at a time."""
    stream = np.unpackbits(octets, axis=-1, bitorder="little")
    stream = stream[:, : stream.shape[1] // bits * bits]
    fields = stream.reshape(len(stream), stream.shape[1] // bits, bits)
    return fields.astype(np.int64) @ (1 << np.arange(bits))


@pytest.mark.parametrize("packing", ROWS.values(), ids=ROWS)
@settings(deadline=None)
@given(data=st.data())
def test_unpack_inverts_pack(packing: RowPacking, data: st.DataObject) -> None:
    codes, bits = data.draw(code_matrices(packing))
    words = packing.pack(codes, bits)
    assert words.shape == packing.layout.packed_shape(codes.shape, bits)
    found = packing.unpack(words, bits, codes.shape[1])
    np.testing.assert_array_equal(found, codes)


@st.composite
def whole_codes(draw: st.DrawFn, packing: Packing) -> tuple[Codes, int]:
    """`(codes, bits)` of small matrices that the layout takes, every code in range."""
    bits = draw(st.sampled_from(packing.layout.bits))
    shape = (draw(st.integers(0, 40)), draw(st.integers(0, 130)))
    try:
        packing.layout.packed_shape(shape, bits)
    except LayoutError:
        shape = (shape[0] // 32 * 32, shape[1] // 64 * 64)
    in_range = st.integers(0, 2**bits - 1)
    return draw(hnp.arrays(np.uint8, shape, elements=in_range)), bits


@pytest.mark.parametrize("layout", PACKINGS)
@settings(deadline=None)
@given(data=st.data())
def test_whole_weights_come_back(layout: str, data: st.DataObject) -> None:
    codes, bits = data.draw(whole_codes(PACKINGS[layout]))
    words = pack(layout, codes, bits)
    assert words.shape == LAYOUTS[layout].packed_shape(codes.shape, bits)
    np.testing.assert_array_equal(unpack(layout, words, bits, codes.shape), codes)


@pytest.mark.parametrize("layout", STREAMS)
@settings(deadline=None)
@given(data=st.data())
def test_a_row_is_one_little_endian_bit_stream(
    layout: str, data: st.DataObject
) -> None:
    packing = ROWS[layout]
    bits = data.draw(st.sampled_from(packing.layout.bits))
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9)))
    dtype = storage_dtype(packing.layout.word_dtype)
    words = data.draw(hnp.arrays(dtype, shape))
    expected = textbook_bits(words.view(np.uint8), bits)
    np.testing.assert_array_equal(packing.unpack(words, bits), expected)
    count = data.draw(st.integers(0, expected.shape[1]))
    found = packing.unpack(words, bits, count)
    np.testing.assert_array_equal(found, expected[:, :count])


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@settings(deadline=None)
@given(values=hnp.arrays(np.float32, 8, elements=st.floats(width=32, allow_nan=False)))
def test_rounding_picks_a_nearest_neighbour(
    dtype: str, values: npt.NDArray[np.float32]
) -> None:
    rounded = from_float32(values, dtype)
    near = to_float32(rounded).astype(np.float64)
    limit = float(to_float32(Stored(dtype, _largest(dtype)))[0])
    inside = np.abs(values) <= limit
    again = to_float32(from_float32(near.astype(np.float32), dtype))
    np.testing.assert_array_equal(again, near.astype(np.float32))
    precision, least = (11, 2.0**-24) if dtype == "F16" else (8, 2.0**-133)
    exact = values[inside].astype(np.float64)
    half_step = np.maximum(np.abs(exact) * 2.0**-precision, least / 2)
    assert (np.abs(near[inside] - exact) <= half_step).all()


def _largest(dtype: str) -> npt.NDArray[np.uint16] | npt.NDArray[np.float16]:
    if dtype == "F16":
        return np.array([65504], np.float16)
    return np.array([0x7F7F], np.uint16)
