"""`u32-lsb`: codes fill uint32 words from the least significant bit up.

Codes run along the last axis with no gap between them, so a row is one little-endian
bit stream, and code `i` has the bits from `i * bits` on. For bits=4 and bits=3:

    bit   31..28 27..24 23..20 19..16 15..12 11..8  7..4   3..0
    code  [7]    [6]    [5]    [4]    [3]    [2]    [1]    [0]

    bit   31..30     29..27 26..24 ...  8..6   5..3   2..0
    code  [10] low   [9]    [8]    ...  [2]    [1]    [0]

Source: https://github.com/ml-explore/mlx, `mx.quantize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from qmanifest.layouts import U32_LSB
from qmanifest.packings.base import codes_per_row, require_codes
from qmanifest.packings.streams import exchanges, join, split

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

layout: Final = U32_LSB

__all__ = ["exchanges", "layout", "pack", "unpack"]


def pack(codes: Codes, bits: int) -> npt.NDArray[np.uint32]:
    """Pack codes `(..., n)` uint8 into words `(..., n * bits / 32)` uint32.

    Raises:
        LayoutError: a row is not a whole number of words.
        PackingError: the codes are not uint8, or one does not fit in `bits`.

    """
    shape = layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    # Rows are whole words, so all of them together are one stream as well.
    stream = join(codes.reshape(1, -1), bits).reshape(-1)
    return stream[: codes.size * bits // 8].view("<u4").reshape(shape)


def unpack(words: Words, bits: int, count: int | None = None) -> Codes:
    """Unpack words `(..., m)` uint32 into codes `(..., m * 32 // bits)` uint8.

    With `count`, into the first `count` codes of every row.

    Raises:
        PackingError: the words are not uint32 or hold fewer codes, or the layout
            does not hold codes of `bits` bits.

    """
    count = codes_per_row(layout, words, bits, count)
    octets = np.ascontiguousarray(words).view(np.uint8)
    rows = octets.size // octets.shape[-1] if octets.shape[-1] else 0
    codes = split(octets.reshape(rows, octets.shape[-1]), bits, count)
    return codes.reshape(*words.shape[:-1], count)
