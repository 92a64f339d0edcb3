"""Packings on chosen codes, memory layouts and bad input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from qmanifest.errors import LayoutError, PackingError
from qmanifest.packings import (
    PACKINGS,
    ROWS,
    WHOLES,
    Packing,
    RowPacking,
    pack,
    u8_nibbles,
    u32_lsb,
    unpack,
)
from qmanifest.packings.planes import planes

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

each_row = pytest.mark.parametrize("packing", ROWS.values(), ids=ROWS)
each_packing = pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)

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


@each_row
def test_any_memory_layout(packing: RowPacking) -> None:
    codes = np.arange(6 * 64, dtype=np.uint8).reshape(6, 64) % 16
    words = packing.pack(codes, 4)
    for odd in (np.asfortranarray(codes), np.repeat(codes, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(packing.pack(odd, 4), words)
    np.testing.assert_array_equal(packing.unpack(np.asfortranarray(words), 4), codes)
    spread = np.zeros((6, 2 * words.shape[1]), words.dtype)
    spread[:, ::2] = words
    np.testing.assert_array_equal(packing.unpack(spread[:, ::2], 4), codes)
    np.testing.assert_array_equal(packing.unpack(words[::-1], 4), codes[::-1])


@each_row
@pytest.mark.parametrize("shape", [(0, 32), (3, 0), (2, 0, 32), (32,), (2, 3, 32)])
def test_every_rank_and_empty(packing: RowPacking, shape: tuple[int, ...]) -> None:
    codes = np.full(shape, 9, np.uint8)
    words = packing.pack(codes, 4)
    assert words.shape == packing.layout.packed_shape(shape, 4)
    np.testing.assert_array_equal(packing.unpack(words, 4), codes)
    assert packing.unpack(words, 4, 0).shape == (*shape[:-1], 0)


@each_row
def test_more_codes_than_one_block(packing: RowPacking) -> None:
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


@each_packing
def test_code_too_wide(packing: Packing) -> None:
    bits = min(packing.layout.bits, key=lambda each: abs(each - 4))
    if bits < 8:
        codes = np.full((8, 64), 1 << bits, np.uint8)
        with pytest.raises(PackingError, match="does not fit in"):
            packing.pack(codes, bits)


@each_packing
def test_codes_of_another_dtype(packing: Packing) -> None:
    with pytest.raises(PackingError, match="codes are uint8, not int64"):
        packing.pack(np.zeros((8, 64), "i8"), packing.layout.bits[-1])


@each_row
def test_words_of_another_dtype_or_rank(packing: RowPacking) -> None:
    with pytest.raises(PackingError, match="not int64 "):
        packing.unpack(np.zeros((1, 4), "i8"), 4)
    scalar = packing.pack(np.zeros((1, 32), np.uint8), 4)[0, 0]
    with pytest.raises(PackingError, match="expects rows"):
        packing.unpack(np.array(scalar), 4)


@each_row
@pytest.mark.parametrize("bits", [0, 9, -1])
def test_unknown_bits(packing: RowPacking, bits: int) -> None:
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


def some_codes(packing: Packing, *shape: int) -> tuple[Codes, int]:
    bits = min(packing.layout.bits, key=lambda each: abs(each - 4))
    rng = np.random.default_rng(len(packing.layout.id))
    return rng.integers(0, 1 << bits, shape, np.uint8), bits


def changed(words: Words) -> dict[str, Words]:
    return {
        "dtype": np.zeros(words.shape, np.int64),
        "longer": np.concatenate([words, words[:1]]),
        "shorter": words[:-1],
        "rank": words[None],
        "scalar": words.reshape(-1)[0].reshape(()),
    }


@each_packing
@pytest.mark.parametrize("shape", [(8, 64), (64, 128), (0, 64), (8, 0), (0, 0)])
def test_whole_weights(packing: Packing, shape: tuple[int, ...]) -> None:
    name, (codes, bits) = packing.layout.id, some_codes(packing, *shape)
    words = pack(name, codes, bits)
    assert words.shape == packing.layout.packed_shape(shape, bits)
    np.testing.assert_array_equal(unpack(name, words, bits, shape), codes)
    np.testing.assert_array_equal(pack(name, np.asfortranarray(codes), bits), words)
    back = unpack(name, np.asfortranarray(words), bits, shape)
    np.testing.assert_array_equal(back, codes)
    assert back.flags.c_contiguous


@each_packing
def test_words_of_other_weights_are_refused(packing: Packing) -> None:
    name, (codes, bits) = packing.layout.id, some_codes(packing, 8, 64)
    words = pack(name, codes, bits)
    for what, other in changed(words).items():
        with pytest.raises(PackingError):
            raise AssertionError(what, unpack(name, other, bits, (8, 64)).shape)


@each_packing
@pytest.mark.parametrize("shape", [(8, 192), (8, 63), (64,), (), (-8, 64), (8, 10**30)])
def test_shapes_of_other_words_are_refused(
    packing: Packing, shape: tuple[int, ...]
) -> None:
    name, (codes, bits) = packing.layout.id, some_codes(packing, 16, 64)
    words = pack(name, codes, bits)
    with pytest.raises(PackingError):
        unpack(name, words, bits, shape)
    for wrong in (0, 9, -1):
        with pytest.raises(PackingError):
            unpack(name, words, wrong, (16, 64))


@pytest.mark.parametrize("name", sorted({*WHOLES} - {"u8-nibbles-blocks"}))
def test_experts(name: str) -> None:
    packing = PACKINGS[name]
    if name == "i16-awq-fast":
        with pytest.raises(LayoutError, match="matrices"):
            pack(name, np.zeros((2, 8, 64), np.uint8), 4)
        return
    codes, bits = some_codes(packing, 40, 8, 64)
    words = pack(name, codes, bits)
    np.testing.assert_array_equal(unpack(name, words, bits, codes.shape), codes)


@pytest.mark.parametrize("bits", range(2, 9))
def test_planes_are_the_bits(bits: int) -> None:
    assert sum(width for width, _ in planes(bits)) == bits
    assert next(low for _, low in planes(bits)) == 0


def test_planes_come_in_32s() -> None:
    with pytest.raises(LayoutError, match="no multiple of the 32"):
        pack("i32-planes", np.zeros((2, 16), np.uint8), 4)


def test_signed_elements() -> None:
    stored = np.array([[-8, -1, 0, 7]], np.int8)
    codes = unpack("i8", stored, 4, (1, 4))
    np.testing.assert_array_equal(codes, [[8, 15, 0, 7]])
    np.testing.assert_array_equal(pack("i8", codes, 4), stored)
    for outside in (8, -9):
        with pytest.raises(PackingError, match="-8 to 7"):
            unpack("i8", np.array([outside], np.int8), 4, (1,))
    with pytest.raises(PackingError, match="0 to 15"):
        unpack("u8", np.array([16], np.uint8), 4, (1,))


def test_odd_nibbles_are_padded() -> None:
    codes = np.array([[1, 2, 3]], np.uint8)
    words = pack("u8-flat-high", codes, 4)
    np.testing.assert_array_equal(words, [[0x12], [0x30]])
    np.testing.assert_array_equal(unpack("u8-flat-high", words, 4, (1, 3)), codes)


def test_a_table_of_odd_rows_is_padded() -> None:
    codes = np.array([[1], [2], [3]], np.uint8)
    np.testing.assert_array_equal(pack("u8-split-high", codes, 4), [[0x13], [0x20]])
    np.testing.assert_array_equal(pack("u8-split-low", codes, 4), [[0x31], [0x02]])
    for name, words in (("u8-split-high", [0x13, 0x20]), ("u8-split-low", [0x31, 2])):
        stored = np.array(words, np.uint8)[:, None]
        np.testing.assert_array_equal(unpack(name, stored, 4, (3, 1)), codes)
