"""Dequantize, compiled: codes become values in registers, and values are only written.

Affine codes take one pass, whose time is that of writing the result. Small floats take
three over a block that stays in L1: words to lanes, lanes to codes, codes to values.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from qmanifest.kernels.compiled_lanes import read_lanes, spread_codes
from qmanifest.kernels.jit import jit
from qmanifest.kernels.llvm_rebuild import rebuilt_groups

if TYPE_CHECKING:
    from qmanifest.kernels.coding import Coding
    from qmanifest.kernels.compiled_lanes import Lanes
    from qmanifest.packings.arrays import Codes, Float32

BLOCK = 4096
"""Elements of a block: their lanes and values are 20 kilobytes."""


@cache
def rebuild(coding: Coding, written: str, *, streamed: bool = False) -> Any:  # noqa: ANN401 - numba has no types
    """Compile, or load, the function that rebuilds affine groups.

    Args:
        coding: how they are stored; the group size is a multiple of 16.
        written: dtype of the result, F32 or that of the scales.
        streamed: write past the cache; only where `streams` says so.

    Returns:
        A function of addresses: of the result, codes, scales and biases, which all
        follow one another without a gap; then the number of groups, at least one. It
        gives the largest bits of a scale or bias without their signs, which tell
        whether all are finite. It holds no GIL.

    """
    # Only plain constants may be closed over: numba's cache compares their bytes.
    bits, group_size, scale, lookup = coding

    def run(out, codes, scales, biases, groups):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - compiled for int64 alone
        return rebuilt_groups(
            (bits, group_size, scale, lookup, written, streamed),
            (out, codes, scales, biases),
            groups,
        )

    return jit(run)


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
