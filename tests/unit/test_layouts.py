"""Layouts: the shape of packed codes, by arithmetic alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qmanifest.errors import LayoutError
from qmanifest.layouts import LAYOUTS, U8_NIBBLES, U32_LSB

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
    assert {name: layout.id for name, layout in LAYOUTS.items()} == {
        "u32-lsb": "u32-lsb",
        "u8-nibbles": "u8-nibbles",
    }
    assert {layout.word_dtype for layout in LAYOUTS.values()} == {"U32", "U8"}
