"""`i16-awq-fast`: 4-bit codes as AWQ's GEMV_FAST kernels read them.

Four outputs and 64 inputs make a tile of 64 int16 words: 16 words of the first output,
then 16 of each other. A word has four codes of one output, from the lowest nibble up.
The 16 words of an output hold its 64 inputs as two runs of 32, each in the order that
comes of two exchanges of axes:

    32 inputs as (4, 4, 2), numbered 8 * a + 2 * b + c, are put in the order (b, a, c),
    then every 8 of them, as (4, 2), in the order (2, 4): even ones before odd ones

Source: https://github.com/casper-hansen/AutoAWQ, `pack_intweight`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import I16_AWQ_FAST
from qmanifest.packings.base import require_codes, require_words

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape

layout: Final = I16_AWQ_FAST
_ROWS: Final = 4
_RUN: Final = 64


def pack(codes: Codes, bits: int) -> Words:
    """Pack codes `(N, K)` uint8 into words `(N / 4, K)` int16.

    Raises:
        LayoutError: N is no multiple of 4, K none of 64, or `bits` is not 4.
        PackingError: the codes are not uint8, or one does not fit in 4 bits.

    """
    n, k = layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    runs = codes.reshape(n * _ROWS, k // 32, 4, 4, 2).transpose(0, 1, 3, 2, 4)
    eights = runs.reshape(n * _ROWS, k // 32, 4, 4, 2).transpose(0, 1, 2, 4, 3)
    tiles = eights.reshape(n, _ROWS, k // _RUN, _RUN).transpose(0, 2, 1, 3)
    nibbles = tiles.reshape(n, k, 4).astype("<u2")
    words = np.zeros((n, k), "<u2")
    for place in range(4):
        words |= nibbles[:, :, place] << np.uint16(4 * place)
    return words.view("<i2")


def restore(words: Words, bits: int, shape: Shape) -> Codes:
    """Unpack words into codes of `shape`.

    Raises:
        PackingError: the words cannot be those of such a weight.

    """
    require_words(layout, words, bits, shape)
    n, k = words.shape
    unsigned = np.ascontiguousarray(words).view("<u2")
    nibbles = np.empty((n, k, 4), np.uint8)
    for place in range(4):
        nibbles[:, :, place] = (unsigned >> np.uint16(4 * place)) & np.uint16(15)
    tiles = nibbles.reshape(n, k // _RUN, _ROWS, _RUN).transpose(0, 2, 1, 3)
    eights = tiles.reshape(n * _ROWS, k // 32, 4, 2, 4).transpose(0, 1, 2, 4, 3)
    runs = eights.reshape(n * _ROWS, k // 32, 4, 4, 2).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(runs.reshape(shape))
