"""`u32-lsb`: codes fill uint32 words from the least significant bit up.

Codes run along the last axis with no gap between them, so a row is one little-endian
bit stream, and code `i` has the bits from `i * bits` on. For bits=4 and bits=3:

    bit   31..28 27..24 23..20 19..16 15..12 11..8  7..4   3..0
    code  [7]    [6]    [5]    [4]    [3]    [2]    [1]    [0]

    bit   31..30     29..27 26..24 ...  8..6   5..3   2..0
    code  [10] low   [9]    [8]    ...  [2]    [1]    [0]

Eight codes are `bits` whole bytes at every width. Eight bytes with a code each are
therefore squeezed into `bits` bytes by three exchanges inside one uint64, which join
neighbours into pairs, pairs into fours and fours into the eight.

Source: https://github.com/ml-explore/mlx, `mx.quantize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from qmanifest.layouts import U32_LSB
from qmanifest.packings.arrays import row_blocks
from qmanifest.packings.base import codes_per_row, require_codes

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words

layout: Final = U32_LSB


def exchanges(bits: int) -> tuple[tuple[int, int, int], ...]:
    """List how codes move within 64 bits when packing: stay, arrive, distance.

    One exchange for each lane of 8, 16 and 32 bits. A lane holds its codes in its
    lowest bits; those of the lower lane of every pair stay (first mask), and those of
    the upper lane move down by `distance` to arrive above them (second mask).
    """
    steps = []
    for lane in (8, 16, 32):
        used = lane // 8 * bits
        stay = sum(((1 << used) - 1) << at for at in range(0, 64, 2 * lane))
        steps.append((stay, stay << used, lane - used))
    return tuple(steps)


def pack(codes: Codes, bits: int) -> npt.NDArray[np.uint32]:
    """Pack codes `(..., n)` uint8 into words `(..., n * bits / 32)` uint32.

    Raises:
        LayoutError: a row is not a whole number of words.
        PackingError: the codes are not uint8, or one does not fit in `bits`.

    """
    shape = layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    # Rows are whole words, so all of them together are one stream as well.
    eights = _in_rows_of(8, codes.reshape(1, -1)).reshape(-1, 8)
    octets = np.empty((len(eights), bits), np.uint8)
    for block in row_blocks(len(eights), 8):
        octets[block] = _squeeze(eights[block], bits)
    stream = octets.reshape(-1)[: codes.size * bits // 8]
    return stream.view("<u4").reshape(shape)


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
    octets = _in_rows_of(bits, octets.reshape(rows, octets.shape[-1]))
    per_row = octets.shape[1] // bits * 8
    octets = octets.reshape(-1, bits)
    codes = np.empty((len(octets), 8), np.uint8)
    for block in row_blocks(len(octets), 8):
        codes[block] = _spread(octets[block], bits)
    whole = codes.reshape(rows, per_row)[:, :count]
    return np.ascontiguousarray(whole).reshape(*words.shape[:-1], count)


def _in_rows_of(multiple: int, octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Pad rows with zeros to a multiple of `multiple` bytes; copy only if needed."""
    missing = -octets.shape[1] % multiple
    if missing:
        return np.pad(octets, ((0, 0), (0, missing)))
    return np.ascontiguousarray(octets)


def _squeeze(eights: Codes, bits: int) -> npt.NDArray[np.uint8]:
    """Turn `(n, 8)` codes, contiguous, into their stream of `(n, bits)` bytes."""
    lanes = eights.view("<u8")
    for stay, arrive, distance in exchanges(bits):
        moved = (lanes >> np.uint64(distance)) & np.uint64(arrive)
        lanes = (lanes & np.uint64(stay)) | moved
    return lanes.view(np.uint8)[:, :bits]


def _spread(octets: npt.NDArray[np.uint8], bits: int) -> Codes:
    """Turn a stream of `(n, bits)` bytes into its `(n, 8)` codes."""
    eights = np.zeros((len(octets), 8), np.uint8)
    eights[:, :bits] = octets
    lanes = eights.view("<u8")
    for stay, arrive, distance in reversed(exchanges(bits)):
        moved = (lanes & np.uint64(arrive)) << np.uint64(distance)
        lanes = (lanes & np.uint64(stay)) | moved
    return lanes.view(np.uint8)
