"""`i32-awq`: eight 4-bit codes in an int32 word, even columns before odd ones.

    bit   31..28 27..24 23..20 19..16 15..12 11..8  7..4   3..0
    code  [7]    [5]    [3]    [1]    [6]    [4]    [2]    [0]

Source: https://github.com/casper-hansen/AutoAWQ, `WQLinear_GEMM`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import I32_AWQ
from qmanifest.packings.base import codes_per_row, require_codes
from qmanifest.packings.padded_streams import I32_STREAM

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

layout: Final = I32_AWQ
ORDER: Final = (0, 2, 4, 6, 1, 3, 5, 7)
"""The column of every nibble, from the lowest."""
_EIGHT: Final = len(ORDER)


def pack(codes: Codes, bits: int) -> Words:
    """Pack codes `(..., n)` uint8 into words `(..., n / 8)` int32.

    Raises:
        LayoutError: `n` is no multiple of 8, or `bits` is not 4.
        PackingError: the codes are not uint8, or one does not fit in 4 bits.

    """
    layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    eights = codes.reshape(*codes.shape[:-1], codes.shape[-1] // _EIGHT, _EIGHT)
    return I32_STREAM.pack(eights[..., list(ORDER)].reshape(codes.shape), bits)


def unpack(words: Words, bits: int, count: int | None = None) -> Codes:
    """Unpack words `(..., m)` int32 into codes `(..., 8 * m)` uint8.

    With `count`, into the first `count` codes of every row.

    Raises:
        PackingError: the words are not int32 or hold fewer codes, or `bits` is not 4.

    """
    count = codes_per_row(layout, words, bits, count)
    nibbles = I32_STREAM.unpack(words, bits)
    eights = nibbles.reshape(*words.shape, _EIGHT)
    codes = np.empty_like(eights)
    codes[..., list(ORDER)] = eights
    return np.ascontiguousarray(codes.reshape(nibbles.shape)[..., :count])
