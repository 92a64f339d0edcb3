"""Laws of every packing, over codes of any shape and width."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmanifest.packings import PACKINGS, Packing
from qmanifest.packings.arrays import Codes, Stored, from_float32, to_float32


@st.composite
def code_matrices(draw: st.DrawFn, packing: Packing) -> tuple[Codes, int]:
    """`(codes, bits)`: up to 4 rows of whole words, every code in range."""
    bits = draw(st.sampled_from(packing.layout.bits))
    unit = next(n for n in range(1, 33) if n * bits % packing.layout.word_bits == 0)
    shape = (draw(st.integers(0, 4)), unit * draw(st.integers(0, 5)))
    in_range = st.integers(0, 2**bits - 1)
    return draw(hnp.arrays(np.uint8, shape, elements=in_range)), bits


def textbook_bits(octets: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.int64]:
    """Read rows of bytes as a little-endian stream, one bit at a time."""
    stream = np.unpackbits(octets, axis=-1, bitorder="little")
    stream = stream[:, : stream.shape[1] // bits * bits]
    fields = stream.reshape(len(stream), stream.shape[1] // bits, bits)
    return fields.astype(np.int64) @ (1 << np.arange(bits))


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
@settings(deadline=None)
@given(data=st.data())
def test_unpack_inverts_pack(packing: Packing, data: st.DataObject) -> None:
    codes, bits = data.draw(code_matrices(packing))
    words = packing.pack(codes, bits)
    assert words.shape == packing.layout.packed_shape(codes.shape, bits)
    np.testing.assert_array_equal(packing.unpack(words, bits), codes)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
@settings(deadline=None)
@given(data=st.data())
def test_a_row_is_one_little_endian_bit_stream(
    packing: Packing, data: st.DataObject
) -> None:
    bits = data.draw(st.sampled_from(packing.layout.bits))
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9)))
    dtype = np.dtype(f"<u{packing.layout.word_bits // 8}")
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
