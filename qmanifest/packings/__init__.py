"""Bit layouts of codes: one module per idea, all in `PACKINGS`.

To add one, describe it in `qmanifest.layouts`, write a module with the members of
`base.RowPacking` or `base.WholePacking`, and add it to a tuple below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.packings import (
    awq,
    awq_fast,
    blocks,
    planes,
    u8_nibbles,
    u32_lsb,
    whole_words,
)
from qmanifest.packings.base import RowPacking, WholePacking, require_words
from qmanifest.packings.flat_high import FLAT_HIGH
from qmanifest.packings.padded_streams import I8_STREAM, I32_STREAM, U8_STREAM
from qmanifest.packings.plain import PLAIN
from qmanifest.packings.split_words import SPLIT
from qmanifest.packings.turned import TURNED

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape

Packing: TypeAlias = RowPacking | WholePacking

_ROWS: Final[tuple[RowPacking, ...]] = (
    *(u32_lsb, u8_nibbles, I32_STREAM, U8_STREAM, I8_STREAM, whole_words, planes, awq),
)
_WHOLES: Final[tuple[WholePacking, ...]] = (
    *PLAIN,
    *TURNED,
    *FLAT_HIGH,
    *SPLIT,
    blocks,
    awq_fast,
)
ROWS: Final[dict[str, RowPacking]] = {each.layout.id: each for each in _ROWS}
"""Packings of rows, which can be taken apart row by row."""
WHOLES: Final[dict[str, WholePacking]] = {each.layout.id: each for each in _WHOLES}
"""Packings of whole weights."""
PACKINGS: Final[dict[str, Packing]] = {**ROWS, **WHOLES}
"""Every packing by the id of its layout."""


def pack(layout: str, codes: Codes, bits: int) -> Words:
    """Pack codes uint8, of the shape that a weight's codes have in that layout.

    Raises:
        LayoutError: the layout does not take that shape or width.
        PackingError: the codes are not uint8, or one does not fit in `bits`.

    """
    return PACKINGS[layout].pack(codes, bits)


def unpack(layout: str, words: Words, bits: int, shape: Shape) -> Codes:
    """Unpack words into the codes of `shape`, uint8.

    Raises:
        PackingError: the words are not those of such codes, in dtype or shape.

    """
    rows = ROWS.get(layout)
    if rows is None:
        return WHOLES[layout].restore(words, bits, shape)
    require_words(rows.layout, words, bits, shape)
    return rows.unpack(words, bits, shape[-1])


__all__ = [
    "PACKINGS",
    "ROWS",
    "WHOLES",
    "Packing",
    "RowPacking",
    "WholePacking",
    "pack",
    "unpack",
]
