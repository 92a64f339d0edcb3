"""Packings on chosen codes, memory layouts and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from qmanifest.errors import LayoutError, PackingError
from qmanifest.packings import PACKINGS, Packing, u8_nibbles, u32_lsb

BY_HAND = {
    # id: bits, codes of one row, words of one row
    "1-bit": (1, [1, 0, 1, 1] + [0] * 28, [0b1101]),
    "2-bit": (2, [0, 1, 2, 3] * 4, [0xE4E4E4E4]),
    "3-bit straddles": (3, [0] * 10 + [7] + [0] * 21, [0xC0000000, 1, 0]),
    "4-bit counts up": (4, [0, 1, 2, 3, 4, 5, 6, 7], [0x76543210]),
    "5-bit straddles": (5, [0] * 6 + [0b10110] + [0] * 25, [0x80000000, 5, 0, 0, 0]),
    "6-bit straddles": (6, [0] * 5 + [0b101101] + [0] * 10, [0x40000000, 11, 0]),
    "8-bit one word": (8, [1, 2, 3, 255], [0xFF030201]),
}


@pytest.mark.parametrize(("bits", "codes", "words"), BY_HAND.values(), ids=BY_HAND)
def test_u32_lsb_by_hand(bits: int, codes: list[int], words: list[int]) -> None:
    codes_array = np.array([codes], np.uint8)
    words_array = np.array([words], np.uint32)
    packed = u32_lsb.pack(codes_array, bits)
    assert packed.dtype == np.uint32
    np.testing.assert_array_equal(packed, words_array)
    np.testing.assert_array_equal(u32_lsb.unpack(words_array, bits), codes_array)


def test_u8_nibbles_by_hand() -> None:
    codes = np.array([[1, 2, 15, 0]], np.uint8)
    np.testing.assert_array_equal(u8_nibbles.pack(codes, 4), [[0x21, 0x0F]])
    unpacked = u8_nibbles.unpack(np.array([[0x21, 0x0F]], np.uint8), 4)
    np.testing.assert_array_equal(unpacked, codes)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
def test_any_memory_layout(packing: Packing) -> None:
    codes = np.arange(6 * 64, dtype=np.uint8).reshape(6, 64) % 16
    words = packing.pack(codes, 4)
    for odd in (np.asfortranarray(codes), np.repeat(codes, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(packing.pack(odd, 4), words)
    np.testing.assert_array_equal(packing.unpack(np.asfortranarray(words), 4), codes)
    spread = np.zeros((6, 2 * words.shape[1]), words.dtype)
    spread[:, ::2] = words
    np.testing.assert_array_equal(packing.unpack(spread[:, ::2], 4), codes)
    np.testing.assert_array_equal(packing.unpack(words[::-1], 4), codes[::-1])


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("shape", [(0, 32), (3, 0), (2, 0, 32), (32,), (2, 3, 32)])
def test_every_rank_and_empty(packing: Packing, shape: tuple[int, ...]) -> None:
    codes = np.full(shape, 9, np.uint8)
    words = packing.pack(codes, 4)
    assert words.shape == packing.layout.packed_shape(shape, 4)
    np.testing.assert_array_equal(packing.unpack(words, 4), codes)
    assert packing.unpack(words, 4, 0).shape == (*shape[:-1], 0)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
def test_more_codes_than_one_block(packing: Packing) -> None:
    codes = np.random.default_rng(0).integers(0, 16, (3, 1 << 18), np.uint8)
    words = packing.pack(codes, 4)
    np.testing.assert_array_equal(packing.unpack(words, 4), codes)
    np.testing.assert_array_equal(words, [packing.pack(row, 4) for row in codes])


def test_count_takes_the_first_codes_of_each_row() -> None:
    codes = np.arange(2 * 32, dtype=np.uint8).reshape(2, 32) % 8
    words = u32_lsb.pack(codes, 3)
    np.testing.assert_array_equal(u32_lsb.unpack(words, 3, 21), codes[:, :21])
    # Two of a word's 32 bits are no whole code of three bits.
    np.testing.assert_array_equal(u32_lsb.unpack(words[:, :1], 3), codes[:, :10])


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
def test_code_too_wide(packing: Packing) -> None:
    codes = np.full((1, 32), 16, np.uint8)
    with pytest.raises(PackingError, match="code 16 does not fit in 4 bits"):
        packing.pack(codes, 4)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
def test_codes_of_another_dtype(packing: Packing) -> None:
    with pytest.raises(PackingError, match="codes are uint8, not int64"):
        packing.pack(np.zeros((1, 32), "i8"), 4)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
def test_words_of_another_dtype_or_rank(packing: Packing) -> None:
    with pytest.raises(PackingError, match="not int32 "):
        packing.unpack(np.zeros((1, 4), "i4"), 4)
    scalar = np.zeros((), "<u4" if packing is u32_lsb else "u1")
    with pytest.raises(PackingError, match="expects rows"):
        packing.unpack(scalar, 4)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("bits", [0, 9, -1])
def test_unknown_bits(packing: Packing, bits: int) -> None:
    with pytest.raises(LayoutError):
        packing.pack(np.zeros((1, 32), np.uint8), bits)
    words = packing.pack(np.zeros((1, 32), np.uint8), 4)
    with pytest.raises(PackingError, match="holds codes of"):
        packing.unpack(words, bits)


def test_row_that_fills_no_whole_words() -> None:
    with pytest.raises(LayoutError, match="not a whole number"):
        u32_lsb.pack(np.zeros((2, 16), np.uint8), 3)
    with pytest.raises(LayoutError, match="not a whole number"):
        u8_nibbles.pack(np.zeros((2, 3), np.uint8), 4)
    with pytest.raises(LayoutError, match="scalar"):
        u32_lsb.pack(np.zeros((), np.uint8), 4)


@pytest.mark.parametrize("count", [9, -1])
def test_more_codes_asked_than_held(count: int) -> None:
    with pytest.raises(PackingError, match=f"holds 8 codes of 4 bits, not {count}"):
        u32_lsb.unpack(np.zeros((2, 1), np.uint32), 4, count)
