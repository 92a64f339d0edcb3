"""Bit streams: codes that follow each other in bytes, from the lowest bit up.

Eight codes are `bits` whole bytes at every width. Eight bytes with a code each are
therefore squeezed into `bits` bytes by three exchanges inside one uint64, which join
neighbours into pairs, pairs into fours and fours into the eight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from qmanifest.packings.arrays import row_blocks

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes


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


def join(rows: Codes, bits: int) -> npt.NDArray[np.uint8]:
    """Turn rows of codes `(r, n)` into rows of bytes, the last of them padded.

    Returns:
        `(r, ceil(n / 8) * bits)` uint8: whole eights, of which the codes beyond `n`
        are zero.

    """
    eights = _in_rows_of(8, rows)
    per_row = eights.shape[1] // 8 * bits
    eights = eights.reshape(-1, 8)
    octets = np.empty((len(eights), bits), np.uint8)
    for block in row_blocks(len(eights), 8):
        octets[block] = _squeeze(eights[block], bits)
    return octets.reshape(len(rows), per_row)


def split(rows: npt.NDArray[np.uint8], bits: int, count: int) -> Codes:
    """Turn rows of bytes `(r, m)` into the first `count` codes of each, contiguous."""
    octets = _in_rows_of(bits, rows)
    per_row = octets.shape[1] // bits * 8
    octets = octets.reshape(-1, bits)
    codes = np.empty((len(octets), 8), np.uint8)
    for block in row_blocks(len(octets), 8):
        codes[block] = _spread(octets[block], bits)
    return np.ascontiguousarray(codes.reshape(len(rows), per_row)[:, :count])


def _in_rows_of(multiple: int, octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Pad rows with zeros to a multiple of `multiple` bytes; copy only if needed."""
    missing = -octets.shape[1] % multiple
    if missing:
        octets = np.pad(octets, ((0, 0), (0, missing)))
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
