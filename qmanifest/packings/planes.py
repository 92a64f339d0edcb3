"""`i32-planes`: 32 codes in `bits` words, the low bits of all before the high ones.

A width is a sum of powers of two, largest first: 7 = 4 + 2 + 1. The first plane has the
lowest 4 bits of all 32 codes in 4 words, the next has 2 more bits of each in 2 words,
the last has the highest bit of each in 1 word. Within a plane, fields fill words from
the least significant bit up. For bits=3, planes of 2 bits and of 1 bit:

    word 0   bit  31..30      ...  3..2       1..0
             of   [15] low         [1] low    [0] low
    word 2   bit  31          ...  1          0
             of   [31] high        [1] high   [0] high

At 2, 4 and 8 bits there is one plane, and the words are those of `i32-lsb`.

Source: https://github.com/ModelCloud/GPTQModel, `planar_packing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import I32_PLANES
from qmanifest.packings.base import codes_per_row, require_codes
from qmanifest.packings.padded_streams import I32_STREAM
from qmanifest.packings.rows import as_table

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

layout: Final = I32_PLANES


def planes(bits: int) -> tuple[tuple[int, int], ...]:
    """List the planes of a code, in order: their width and the bit they begin at."""
    found, below = [], 0
    for width in (8, 4, 2, 1):
        if bits & width:
            found.append((width, below))
            below += width
    return tuple(found)


def pack(codes: Codes, bits: int) -> Words:
    """Pack codes `(..., n)` uint8 into words `(..., n * bits / 32)` int32.

    Raises:
        LayoutError: `n` is no multiple of 32, or `bits` is not 2 to 8.
        PackingError: the codes are not uint8, or one does not fit in `bits`.

    """
    shape = layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    units = codes.reshape(codes.size // layout.unit, layout.unit)
    words = [
        I32_STREAM.pack((units >> np.uint8(low)) & np.uint8((1 << width) - 1), width)
        for width, low in planes(bits)
    ]
    return np.concatenate(words, axis=1).reshape(shape)


def unpack(words: Words, bits: int, count: int | None = None) -> Codes:
    """Unpack words `(..., m)` int32 into codes `(..., m // bits * 32)` uint8.

    With `count`, into the first `count` codes of every row.

    Raises:
        PackingError: the words are not int32 or hold fewer codes, or `bits` is not 2
            to 8.

    """
    count = codes_per_row(layout, words, bits, count)
    table = as_table(words)
    units = table.shape[1] // bits
    blocks = table[:, : units * bits].reshape(len(table) * units, bits)
    codes = np.zeros((len(blocks), layout.unit), np.uint8)
    first = 0
    for width, low in planes(bits):
        plane = I32_STREAM.unpack(blocks[:, first : first + width], width)
        codes |= plane << np.uint8(low)
        first += width
    rows = codes.reshape(len(table), units * layout.unit)
    return np.ascontiguousarray(rows[:, :count]).reshape(*words.shape[:-1], count)
