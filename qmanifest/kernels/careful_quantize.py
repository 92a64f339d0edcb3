"""Quantize and pack a block of groups at a time, in numpy.

numpy is slow where its inner loop is one group: it then starts a loop for every 32 or
64 values, and finds a group's least and largest one by one. A block is therefore turned
first, so that a row holds the same four values of every group; all arithmetic then runs
along whole rows, and the codes are turned back, which are a quarter as large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qmanifest.kernels.base import PackedParts
from qmanifest.kernels.careful_halves import BEYOND, widen_halves
from qmanifest.kernels.careful_pack import pack_block
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, to_float32
from qmanifest.writing.quantize import scale_and_bias

if TYPE_CHECKING:
    from qmanifest.packings.arrays import AnyArray, Codes, Float32

_BLOCK: Final = 1 << 18
"""Elements of a block: a megabyte of float32. Half as much would be nearer to a core,
and twice as many calls, which each cost a microsecond and hold other threads up."""
_LANES: Final = 4
"""Values of a group that stay side by side when a block is turned."""
_FOURS: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype(np.uint32),
    2: np.dtype(np.uint64),
    4: np.dtype(np.complex128),
}
"""What is as wide as four elements, by the bytes of one; only ever copied."""


class Quantizing:
    """A weight on its way; to call one with a range of groups does those."""

    def __init__(self, weight: Stored, bits: int, group_size: int) -> None:
        self.dtype, self.shape = weight.dtype, weight.shape
        self.bits = bits
        self.groups = np.ascontiguousarray(weight.array).reshape(-1, group_size)
        count = len(self.groups)
        self.words = np.empty((count, group_size * bits // 32), np.uint32)
        self.scales = np.empty((count, 1), np.float32)
        self.biases = np.empty((count, 1), np.float32)

    def __call__(self, groups: tuple[int, int]) -> bool:
        """Quantize a range of groups; False as soon as one is not finite."""
        first, last = groups
        size = self.groups.shape[1]
        return all(
            self._block(slice(first + block.start, first + block.stop))
            for block in row_blocks(last - first, size, _BLOCK)
        )

    def finished(self, scale_dtype: str) -> PackedParts:
        """Round the scales and give everything its shape."""
        *rows, width = self.shape
        size = self.groups.shape[1]
        numbers = (*rows, width // size)
        return PackedParts(
            self.words.reshape(*rows, width * self.bits // 32),
            from_float32(self.scales.reshape(numbers), scale_dtype),
            from_float32(self.biases.reshape(numbers), scale_dtype),
        )

    def _block(self, block: slice) -> bool:
        values = self._widened(_turned(self.groups[block]))
        low, high = _ends(values)
        if self.dtype == "F16" and max(high.max(), -low.min()) >= BEYOND:
            return False
        scale, bias = scale_and_bias(low, high, self.bits)
        if not np.isfinite(scale).all():
            return False
        self.scales[block], self.biases[block] = scale, bias
        codes = _codes(values, scale, bias, self.bits)
        octets = pack_block(codes, self.bits)
        self.words[block] = octets.view("<u4").reshape(len(scale), -1)
        return True

    def _widened(self, values: AnyArray) -> Float32:
        """Widen as `to_float32`; of float16, what is not finite stays beyond it."""
        if self.dtype == "F16":
            return widen_halves(values)
        return to_float32(Stored(self.dtype, values))


def _turned(groups: AnyArray) -> AnyArray:
    """Turn `(n, group_size)` elements into `(group_size / 4, n * 4)`, a copy."""
    fours = groups.view(_FOURS[groups.itemsize])
    return np.ascontiguousarray(fours.T).view(groups.dtype)


def _turned_back(rows: Codes) -> Codes:
    """Turn `(group_size / 4, n * 4)` codes into all groups one after another."""
    fours = rows.view(_FOURS[rows.itemsize])
    return np.ascontiguousarray(fours.T).reshape(-1).view(rows.dtype)


def _ends(values: Float32) -> tuple[Float32, Float32]:
    """Find the least and the largest value of every group, `(n, 1)` each.

    Either is NaN where one of the group is.
    """
    ends = []
    for nearer in (np.minimum, np.maximum):
        rest: Float32 = nearer.reduce(values, axis=0)
        while len(rest) > values.shape[1] // _LANES:
            rest = nearer(rest[::2], rest[1::2])
        ends.append(rest.reshape(-1, 1))
    return ends[0], ends[1]


def _codes(values: Float32, scale: Float32, bias: Float32, bits: int) -> Codes:
    """Find the codes nearest to turned values, which are lost; group by group.

    No code is below zero: the bias is the end of a group from which the scale points to
    the other, and where it is zero instead, all are within half a step of it.
    """
    # Equal weights above 3.4e31 get a scale of zero; 0 / 1 is the code of 0 / 0.
    divisor = np.where(scale == 0, np.float32(1), scale)
    # numpy's minimum of an array and one number takes one element at a time.
    most = np.full(values.shape[1], 2**bits - 1, np.float32)
    np.subtract(values, np.repeat(bias, _LANES), out=values)
    np.divide(values, np.repeat(divisor, _LANES), out=values)
    np.rint(values, out=values)
    np.minimum(values, most, out=values)
    return _turned_back(values.astype(np.uint8))
