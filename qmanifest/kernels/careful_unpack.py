"""Unpack a block of the stream of `u32-lsb`, in numpy.

Codes of 2 and 4 bits are parted in twos until each has a byte: a byte is widened to
two, and its upper half moves up to the second. Other widths take the exchanges of
`qmanifest.packings.u32_lsb`, from the last to the first and in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.packings.u32_lsb import exchanges

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes

_LANES: Final = 8
"""Codes, a byte each, that are exchanged within 64 bits."""


def unpack_block(octets: Codes, bits: int) -> Codes:
    """Unpack a contiguous stream of bytes, flat, with a multiple of 8 codes in it."""
    if bits == 8:  # noqa: PLR2004 - bits of a byte
        return octets
    return _parted(octets, bits) if bits in {2, 4} else _exchanged(octets, bits)


def _parted(octets: Codes, bits: int) -> Codes:
    """Unpack codes that are whole in every byte."""
    width = 8
    while width > bits:
        width //= 2
        pairs = octets.astype("<u2")
        pairs |= pairs << np.uint16(8 - width)
        pairs &= np.uint16(((1 << width) - 1) * 0x0101)
        octets = pairs.view(np.uint8)
    return octets


def _exchanged(octets: Codes, bits: int) -> Codes:
    """Unpack codes of any width by exchanges."""
    count = len(octets) // bits
    stream = np.zeros(len(octets) + _LANES - bits, np.uint8)
    stream[: len(octets)] = octets
    # Each has the bytes of its eight codes lowest; above are the next eight's.
    lanes = np.ndarray((count,), "<u8", stream, strides=(bits,)).copy()
    moved = np.empty_like(lanes)
    for stay, arrive, distance in reversed(exchanges(bits)):
        np.bitwise_and(lanes, np.uint64(arrive), out=moved)
        np.left_shift(moved, np.uint64(distance), out=moved)
        np.bitwise_and(lanes, np.uint64(stay), out=lanes)
        np.bitwise_or(lanes, moved, out=lanes)
    return lanes.view(np.uint8)
