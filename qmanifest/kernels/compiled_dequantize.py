"""Dequantize, compiled: codes become values in registers, and values are only written.

Affine codes take one pass, whose time is that of writing the result. Small floats take
three over a block that stays in L1: words to lanes, lanes to codes, codes to values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qmanifest.kernels.compiled_lanes import read_lanes, spread_codes
from qmanifest.kernels.jit import jit
from qmanifest.kernels.llvm_groups import decode

if TYPE_CHECKING:
    from qmanifest.kernels.compiled_lanes import Lanes
    from qmanifest.packings.arrays import AnyArray, Codes, Float32

BLOCK = 4096
"""Elements of a block: their lanes and values are 20 kilobytes."""
BEHIND = 16
"""Bytes behind a group that `decode` may read."""


@jit
def dequantize_groups(  # noqa: PLR0917 - compiled code takes arguments by position
    octets: Codes,
    scales: AnyArray,
    biases: AnyArray,
    values: AnyArray,
    group_size: int,
    width: tuple[int, ...],
    groups: tuple[int, int],
) -> None:
    """Rebuild a range of groups of affine codes.

    Args:
        octets: all packed codes, flat.
        scales: one for every group, finite; the numpy dtype as in `llvm_groups`.
        biases: as `scales`.
        values: all values, flat, to be written: of the scales' dtype, or F32.
        group_size: values in a group, a multiple of 16.
        width: as many zeros as a code has bits; see `decode`.
        groups: the first one, and the one after the last.

    """
    first, last = groups
    size = group_size * len(width) // 8
    # To copy all codes to where more can be read costs as much as to rebuild them, so
    # that only the groups at the very end are.
    inside = min(last, max(first, (octets.size - BEHIND) // size))
    for group in range(first, inside):
        place = (group * size, group * group_size, group_size)
        decode(octets, place + width, scales, biases, group, values)
    packed = np.zeros(size + BEHIND, np.uint8)
    for group in range(inside, last):
        for octet in range(size):
            packed[octet] = octets[group * size + octet]
        place = (0, group * group_size, group_size)
        decode(packed, place + width, scales, biases, group, values)


@jit
def look_up_groups(  # noqa: PLR0917 - compiled code takes arguments by position
    octets: Codes,
    scales: Float32,
    table: Float32,
    values: Float32,
    widths: tuple[int, int],
    steps: Lanes,
    groups: tuple[int, int],
) -> None:
    """Rebuild a range of groups of small floats: `table[code] * scale`.

    Args:
        octets: all packed codes, flat.
        scales: one for every group, finite.
        table: what every code stands for; `2**bits` long.
        values: all values, flat, to be written.
        widths: bits of a code, and values in a group, a multiple of 16.
        steps: of `steps_of(bits)`.
        groups: the first one, and the one after the last.

    """
    bits, group_size = widths
    first, last = groups
    step = max(1, BLOCK // group_size)
    codes = np.empty(step * group_size, np.uint8)
    lanes = codes.view(np.uint64)
    for block in range(first, last, step):
        count = min(step, last - block)
        eights = count * group_size // 8
        read_lanes(lanes, eights, bits, octets, block * group_size // 8 * bits)
        spread_codes(lanes, eights, steps)
        for group in range(count):
            scale = scales[block + group]
            start = (block + group) * group_size
            at = group * group_size
            for index in range(group_size):
                values[start + index] = table[codes[at + index]] * scale
