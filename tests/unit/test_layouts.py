"""Layouts: the shape of packed codes, by arithmetic alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qmanifest.dtypes import DTYPES
from qmanifest.errors import LayoutError
from qmanifest.layouts import LAYOUTS, ROWS, U8_NIBBLES, U32_LSB

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


@pytest.mark.parametrize("bits", U32_LSB.bits)
def test_32_codes_of_any_width_fill_as_many_words(bits: int) -> None:
    assert U32_LSB.packed_shape((2, 3, 64), bits) == (2, 3, 2 * bits)
    assert U32_LSB.codes_per_row(2 * bits, bits) == 64


@pytest.mark.parametrize(
    ("shape", "bits", "packed"),
    [((4,), 8, (1,)), ((0, 32), 3, (0, 3)), ((2, 0), 4, (2, 0)), ((1, 16), 2, (1, 1))],
)
def test_packed_shapes(shape: Shape, bits: int, packed: Shape) -> None:
    assert U32_LSB.packed_shape(shape, bits) == packed


def test_nibbles() -> None:
    assert U8_NIBBLES.packed_shape((3, 10), 4) == (3, 5)
    assert U8_NIBBLES.codes_per_row(5, 4) == 10


@pytest.mark.parametrize(
    ("layout", "shape", "bits", "said"),
    [
        (
            "u32-lsb",
            (2, 33),
            4,
            "a row of 33 codes of 4 bits is not a whole number of 32",
        ),
        ("u32-lsb", (2, 8), 3, "a row of 8 codes of 3 bits"),
        ("u32-lsb", (2, 32), 9, "not 9"),
        ("u32-lsb", (2, 32), 0, "not 0"),
        ("u32-lsb", (), 4, "a scalar has none"),
        ("u8-nibbles", (2, 3), 4, "a row of 3 codes"),
        ("u8-nibbles", (2, 4), 8, "u8-nibbles holds codes of"),
    ],
)
def test_what_does_not_fit(layout: str, shape: Shape, bits: int, said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        LAYOUTS[layout].packed_shape(shape, bits)


def test_codes_that_do_not_fill_the_last_word_are_not_counted() -> None:
    assert U32_LSB.codes_per_row(1, 3) == 10
    assert U32_LSB.codes_per_row(0, 8) == 0


def test_layouts_are_found_by_their_ids() -> None:
    assert all(layout.id == name for name, layout in LAYOUTS.items())
    assert {layout.word_dtype for layout in LAYOUTS.values()} <= DTYPES.keys()
    assert set(ROWS) < set(LAYOUTS)


WHOLES = {
    # layout: shape, bits, shape of the words
    "u8-lsb": ((3, 8), 6, (3, 6)),
    "i32-lsb": ((3, 35), 3, (3, 4)),
    "i32-whole": ((3, 64), 3, (3, 7)),
    "i32-planes": ((3, 64), 5, (3, 10)),
    "i32-awq": ((3, 64), 4, (3, 8)),
    "f8-e4m3": ((2, 3, 5), 8, (2, 3, 5)),
    "i32-lsb-down": ((64, 35), 3, (4, 64)),
    "i32-planes-down": ((5, 64), 3, (6, 5)),
    "i32-awq-across": ((64, 5), 4, (5, 8)),
    "i32-lsb-across": ((64, 5), 4, (5, 8)),
    "i32-lsb-stacked": ((37, 5), 3, (4, 5)),
    "i32-whole-stacked": ((64, 5), 3, (7, 5)),
    "u8-nibbles-stacked": ((2, 6, 5), 4, (2, 3, 5)),
    "u8-flat-high": ((3, 5), 4, (8, 1)),
    "f64-flat-high": ((4, 8), 4, (2, 1)),
    "u8-split-high": ((96, 64), 2, (24, 64)),
    "i32-split-high": ((64, 96), 3, (7, 96)),
    "u8-split-low": ((9, 4), 4, (5, 4)),
    "u8-nibbles-blocks": ((2, 6, 96), 4, (2, 6, 3, 16)),
    "i16-awq-fast": ((64, 256), 4, (16, 256)),
}


@pytest.mark.parametrize("name", WHOLES)
def test_shapes_of_whole_weights(name: str) -> None:
    shape, bits, packed = WHOLES[name]
    assert LAYOUTS[name].packed_shape(shape, bits) == packed
    try:
        largest = LAYOUTS[name].logical_shape(packed, bits)
    except LayoutError:
        assert "flat" in name or "split" in name
    else:
        assert LAYOUTS[name].packed_shape(largest, bits) == packed
        assert all(one >= two for one, two in zip(largest, shape, strict=True))


@pytest.mark.parametrize(
    ("name", "shape", "bits", "said"),
    [
        ("i32-planes", (3, 16), 4, "no multiple of the 32"),
        ("i32-lsb-down", (64,), 4, "packs matrices"),
        ("u8-flat-high", (3, 5), 8, "not 8"),
        ("f64-flat-high", (3, 3), 4, "no whole F64 words"),
        ("u8-split-high", (3, 5), 3, "not 3"),
        ("u8-split-low", (), 4, "packs tables"),
        ("u8-nibbles-blocks", (3, 48), 4, "no whole number of blocks"),
        ("i16-awq-fast", (3, 64), 4, "outputs in fours"),
        ("i16-awq-fast", (2, 4, 64), 4, "matrices"),
        ("i8", (3, 5), 9, "not 9"),
        ("i32-whole", (), 3, "a scalar has none"),
    ],
)
def test_whole_weights_that_do_not_fit(
    name: str, shape: Shape, bits: int, said: str
) -> None:
    with pytest.raises(LayoutError, match=said):
        LAYOUTS[name].packed_shape(shape, bits)


@pytest.mark.parametrize(
    ("name", "packed", "bits"),
    [
        *(("u32-lsb", (), 4), ("i32-lsb-down", (3,), 4), ("i8", (3,), 9)),
        *(("u8-nibbles-blocks", (3, 8), 4), ("i16-awq-fast", (3,), 4)),
        *(("u8-flat-high", (8, 1), 4), ("u8-split-low", (8, 1), 4)),
    ],
)
def test_words_that_show_no_weight(name: str, packed: Shape, bits: int) -> None:
    with pytest.raises(LayoutError):
        LAYOUTS[name].logical_shape(packed, bits)
