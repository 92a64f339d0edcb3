"""Packings as data: the storage word, and the shape that packed codes have.

No numpy here, so that dialects, sizes and rules can do shape arithmetic alone. The
bits themselves are moved by `qmanifest.packings`, one module per layout.
To add a layout, add it to a tuple below; a contract test then asks for its packing.
"""

from __future__ import annotations

from typing import Final

from qmanifest.layouts.base import Layout
from qmanifest.layouts.others import (
    FLAT,
    I16_AWQ_FAST,
    I32_SPLIT_HIGH,
    U8_BLOCKS,
    U8_SPLIT_HIGH,
    U8_SPLIT_LOW,
    BlockedLayout,
    FlatLayout,
    InterleavedLayout,
    SplitLayout,
)
from qmanifest.layouts.rows import (
    F8_E4M3,
    F8_E5M2,
    I8,
    I8_LSB,
    I32_AWQ,
    I32_LSB,
    I32_PLANES,
    I32_WHOLE,
    U8,
    U8_LSB,
    U8_NIBBLES,
    U32_LSB,
    PlainLayout,
    RowLayout,
)
from qmanifest.layouts.turned import (
    I32_AWQ_ACROSS,
    I32_LSB_ACROSS,
    I32_LSB_DOWN,
    I32_LSB_STACKED,
    I32_PLANES_DOWN,
    I32_WHOLE_STACKED,
    U8_NIBBLES_STACKED,
    TurnedLayout,
)

_ROWS: Final = (
    U32_LSB,
    U8_NIBBLES,
    I32_LSB,
    I32_WHOLE,
    I32_PLANES,
    I32_AWQ,
    U8_LSB,
    I8_LSB,
)
_OTHERS: Final[tuple[Layout, ...]] = (
    *(I8, U8, F8_E4M3, F8_E5M2),
    *(I32_LSB_DOWN, I32_PLANES_DOWN, I32_AWQ_ACROSS, I32_LSB_ACROSS),
    *(I32_LSB_STACKED, I32_WHOLE_STACKED, U8_NIBBLES_STACKED),
    *FLAT,
    *(U8_SPLIT_HIGH, I32_SPLIT_HIGH, U8_SPLIT_LOW),
    *(U8_BLOCKS, I16_AWQ_FAST),
)
ROWS: Final[dict[str, RowLayout]] = {each.id: each for each in _ROWS}
"""The layouts of rows, whose words can be taken row by row."""
LAYOUTS: Final[dict[str, Layout]] = {**ROWS, **{each.id: each for each in _OTHERS}}
"""Every layout."""

__all__ = [
    "F8_E4M3",
    "F8_E5M2",
    "FLAT",
    "I8",
    "I8_LSB",
    "I16_AWQ_FAST",
    "I32_AWQ",
    "I32_AWQ_ACROSS",
    "I32_LSB",
    "I32_LSB_ACROSS",
    "I32_LSB_DOWN",
    "I32_LSB_STACKED",
    "I32_PLANES",
    "I32_PLANES_DOWN",
    "I32_SPLIT_HIGH",
    "I32_WHOLE",
    "I32_WHOLE_STACKED",
    "LAYOUTS",
    "ROWS",
    "U8",
    "U8_BLOCKS",
    "U8_LSB",
    "U8_NIBBLES",
    "U8_NIBBLES_STACKED",
    "U8_SPLIT_HIGH",
    "U8_SPLIT_LOW",
    "U32_LSB",
    "BlockedLayout",
    "FlatLayout",
    "InterleavedLayout",
    "Layout",
    "PlainLayout",
    "RowLayout",
    "SplitLayout",
    "TurnedLayout",
]
