"""`i32-whole`: as many whole codes as an int32 word has room for.

Codes run along the last axis, from the least significant bit up; none crosses into the
next word, and the bits that are left over are zero. For bits=3:

    bit   31..30  29..27 26..24 ...  5..3   2..0
    code  unused  [9]    [8]    ...  [1]    [0]

Source: https://github.com/vllm-project/compressed-tensors, `pack_to_int32`, before
version 0.18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import I32_WHOLE
from qmanifest.packings.arrays import row_blocks
from qmanifest.packings.base import codes_per_row, require_codes
from qmanifest.packings.rows import as_table

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

layout: Final = I32_WHOLE


def pack(codes: Codes, bits: int) -> Words:
    """Pack codes `(..., n)` uint8 into words `(..., ceil(n / (32 // bits)))` int32.

    Raises:
        LayoutError: `bits` is none of the layout's widths.
        PackingError: the codes are not uint8, or one does not fit in `bits`.

    """
    shape = layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    per_word, table = layout.word_bits // bits, as_table(codes)
    words = np.zeros((len(table), shape[-1]), "<u4")
    for place in range(per_word):
        some = table[:, place::per_word]
        words[:, : some.shape[1]] |= some.astype("<u4") << np.uint32(place * bits)
    return words.view("<i4").reshape(shape)


def unpack(words: Words, bits: int, count: int | None = None) -> Codes:
    """Unpack words `(..., m)` int32 into codes `(..., m * (32 // bits))` uint8.

    With `count`, into the first `count` codes of every row.

    Raises:
        PackingError: the words are not int32 or hold fewer codes, or the layout does
            not hold codes of `bits` bits.

    """
    count = codes_per_row(layout, words, bits, count)
    per_word, table = layout.word_bits // bits, as_table(words)
    codes = np.empty((*table.shape, per_word), np.uint8)
    for block in row_blocks(len(table), table.shape[1] * per_word):
        unsigned = np.ascontiguousarray(table[block]).view("<u4")
        for place in range(per_word):
            field = (unsigned >> np.uint32(place * bits)) & np.uint32((1 << bits) - 1)
            codes[block, :, place] = field
    rows = codes.reshape(len(table), table.shape[1] * per_word)
    return np.ascontiguousarray(rows[:, :count]).reshape(*words.shape[:-1], count)
