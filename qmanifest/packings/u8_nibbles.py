"""`u8-nibbles`: two 4-bit codes in a byte, the even column in the low nibble.

    bit   7..4         3..0
    code  [2 * i + 1]  [2 * i]

Source: https://github.com/NVIDIA/Model-Optimizer, `NVFP4QTensor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import U8_NIBBLES
from qmanifest.packings.base import codes_per_row, require_codes

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

layout: Final = U8_NIBBLES


def pack(codes: Codes, bits: int) -> Codes:
    """Pack codes `(..., n)` uint8 into bytes `(..., n / 2)` uint8.

    Raises:
        LayoutError: a row has an odd number of codes, or `bits` is not 4.
        PackingError: the codes are not uint8, or one does not fit in 4 bits.

    """
    layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    return codes[..., 0::2] | (codes[..., 1::2] << np.uint8(4))


def unpack(words: Words, bits: int, count: int | None = None) -> Codes:
    """Unpack bytes `(..., m)` uint8 into codes `(..., 2 * m)` uint8.

    With `count`, into the first `count` codes of every row.

    Raises:
        PackingError: the words are not uint8 or hold fewer codes, or `bits` is not 4.

    """
    count = codes_per_row(layout, words, bits, count)
    codes = np.empty((*words.shape[:-1], 2 * words.shape[-1]), np.uint8)
    codes[..., 0::2] = words & np.uint8(15)
    codes[..., 1::2] = words >> np.uint8(4)
    return np.ascontiguousarray(codes[..., :count])
