"""Quantize and pack, compiled: a block of groups at a time, in passes over L1.

Each pass is one plain loop over a block that stays in the first-level cache, since what
LLVM vectorises is a loop that does one thing: ends of groups, then scales and biases,
then codes, then the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import types

from qmanifest.kernels.compiled_lanes import squeeze, write_lanes
from qmanifest.kernels.jit import jit
from qmanifest.kernels.llvm_groups import encode, extremes, narrow
from qmanifest.kernels.native_build import as_array, module_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.kernels.compiled_lanes import Lanes
    from qmanifest.packings.arrays import AnyArray, Codes, Float32

LANES = 16


@jit
def quantize_groups(  # noqa: PLR0917 - compiled code takes arguments by position
    values: AnyArray,
    octets: Codes,
    scales: AnyArray,
    biases: AnyArray,
    scratch: tuple[Codes, Lanes, Float32, Float32, AnyArray, AnyArray],
    widths: tuple[int, int],
    steps: Lanes,
    groups: tuple[int, int],
) -> bool:
    """Quantize a range of groups; return whether all of them were regular.

    Args:
        values: all stored floats, flat; the numpy dtype as in `llvm_groups`.
        octets: all packed codes, flat, to be written.
        scales: one for every group, to be written in the dtype they are stored in.
        biases: as `scales`.
        scratch: for a block: its codes, the same memory as uint64, and the ends and
            the scales and biases of its groups, a multiple of 16 of each.
        widths: bits of a code, and values in a group, a multiple of 32.
        steps: of `steps_of(bits)`.
        groups: the first one, and the one after the last.

    """
    bits, group_size = widths
    first, last = groups
    # Group by group: ends first, which scale and bias then replace.
    codes, lanes, one, two, stored_scale, stored_bias = scratch
    step = max(1, codes.size // group_size)
    padded = (step + LANES - 1) // LANES * LANES
    top = np.float32((1 << bits) - 1)
    regular = True
    for block in range(first, last, step):
        count = min(step, last - block)
        for group in range(count):
            start = (block + group) * group_size
            one[group], two[group] = extremes(values, start, group_size)
        regular &= scale_and_bias(one, two, count, top)
        for group in range(count):
            start = (block + group) * group_size
            numbers = (one[group], two[group], top)
            encode(values, start, group_size, numbers, codes, group * group_size)
        narrow(one, padded, stored_scale)
        narrow(two, padded, stored_bias)
        for group in range(count):
            scales[block + group] = stored_scale[group]
            biases[block + group] = stored_bias[group]
        eights = count * group_size // 8
        squeeze(lanes, eights, steps)
        write_lanes(lanes, eights, bits, octets, block * group_size // 8 * bits)
    return regular


@jit
def scale_and_bias(one: Float32, two: Float32, count: int, top: np.float32) -> bool:
    """Replace the ends of groups by their scales and biases, as the reference does.

    Returns whether all ends and scales are finite.
    """
    regular = True
    most = np.float32(3.4028235e38)
    for group in range(count):
        low, high = one[group], two[group]
        span = max((high - low) / top, np.float32(1e-7))
        low_end = abs(low) > abs(high)
        scale = span if low_end else -span
        end = low if low_end else high
        whole = np.rint(end / scale)
        zero = whole == np.float32(0)
        one[group] = scale if zero else end / (np.float32(1) if zero else whole)
        two[group] = np.float32(0) if zero else end
        # NaN compares as false; a span beyond float32 is infinite.
        regular &= (abs(low) <= most) & (abs(high) <= most) & (span <= most)
    return regular


def module(value: str, scale: str) -> str:
    """Compile all of it for one dtype of values and one of scales, by numpy's names."""
    point = types.CPointer  # by their place in `_entry`
    arrays = (value, "uint8", scale, scale, "uint8", "uint64", "float32", "float32")
    pointers = [point(getattr(types, each)) for each in (*arrays, scale, scale)]  # type: ignore[no-untyped-call]
    table = point(types.uint64)  # type: ignore[no-untyped-call]
    return module_of(_entry, (*pointers, table, *[types.intp] * NUMBERS))


NUMBERS = 6
"""Arguments of `_entry` that are no pointers."""


def _entry(  # noqa: PLR0917 - C knows no arrays
    values: Sequence[float],
    octets: Sequence[int],
    scales: Sequence[float],
    biases: Sequence[float],
    codes: Sequence[int],
    lanes: Sequence[int],
    one: Sequence[float],
    two: Sequence[float],
    stored_scale: Sequence[float],
    stored_bias: Sequence[float],
    steps: Sequence[int],
    bits: int,
    group_size: int,
    block: int,
    padded: int,
    first: int,
    last: int,
) -> int:
    """Take pointers for arrays; `block` counts codes, `padded` groups of a block."""
    size = last * group_size
    scratch = (
        as_array(codes, (block,)),
        as_array(lanes, (block // 8,)),
        as_array(one, (padded,)),
        as_array(two, (padded,)),
        as_array(stored_scale, (padded,)),
        as_array(stored_bias, (padded,)),
    )
    regular = quantize_groups(
        as_array(values, (size,)),
        as_array(octets, (size // 8 * bits,)),
        as_array(scales, (last,)),
        as_array(biases, (last,)),
        scratch,
        (bits, group_size),
        as_array(steps, (3, 3)),
        (first, last),
    )
    return 1 if regular else 0
