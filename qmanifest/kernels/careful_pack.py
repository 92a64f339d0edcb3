"""Pack a block of codes into the stream of `u32-lsb`, in numpy.

Codes of 2 and 4 bits are joined in twos until a byte is full: the upper code of two
bytes moves down to meet the lower one, and a cast drops the rest. Other widths take the
exchanges of `qmanifest.packings.u32_lsb`, here in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qmanifest.packings.u32_lsb import exchanges

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes


def pack_block(codes: Codes, bits: int) -> Codes:
    """Pack codes, each below `2**bits`, a multiple of 8 of them, into bytes.

    The codes are contiguous, and what they were is lost.
    """
    octets = codes.reshape(-1)
    if bits in {2, 4}:
        width = bits
        while width < 8:  # noqa: PLR2004 - bits of a byte
            pairs = octets.view("<u2")
            octets = (pairs | (pairs >> np.uint16(8 - width))).astype(np.uint8)
            width *= 2
        return octets
    if bits == 8:  # noqa: PLR2004 - bits of a byte
        return octets
    lanes = octets.view("<u8")
    moved = np.empty_like(lanes)
    for stay, arrive, distance in exchanges(bits):
        np.right_shift(lanes, np.uint64(distance), out=moved)
        np.bitwise_and(moved, np.uint64(arrive), out=moved)
        np.bitwise_and(lanes, np.uint64(stay), out=lanes)
        np.bitwise_or(lanes, moved, out=lanes)
    eights = octets.reshape(-1, 8)
    stream = np.empty((len(eights), bits), np.uint8)
    for place in range(bits):  # by columns, as copies of a few bytes each are slow
        stream[:, place] = eights[:, place]
    return stream.reshape(-1)
