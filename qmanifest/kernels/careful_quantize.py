"""Quantize and pack a block of groups at a time, in numpy.

The least and the largest of a group are found among integers of the same order as the
floats, which numpy does three times as fast. A scale per group is first repeated to one
per value: numpy's arithmetic is two to three times slower where it repeats by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.kernels.base import PackedParts
from qmanifest.kernels.careful_pack import pack_block
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, to_float32
from qmanifest.writing.quantize import scale_and_bias

if TYPE_CHECKING:
    import numpy.typing as npt

    from qmanifest.packings.arrays import Float32

    Integers = npt.NDArray[np.int32]

_BLOCK: Final = 1 << 17
"""Elements of a block: its three arrays of float32 fit a core's second-level cache."""
_TOP: Final = np.int32(0x7FFFFFFF)


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
        rows = min(last - first, max(1, _BLOCK // size))
        space = tuple(np.empty((rows, size), np.float32) for _ in range(2))
        return all(
            self._block(slice(first + block.start, first + block.stop), *space)
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

    def _block(self, block: slice, work: Float32, full: Float32) -> bool:
        values = to_float32(Stored(self.dtype, self.groups[block]))
        work, full = work[: len(values)], full[: len(values)]
        low, high = _ends(values, work.view(np.int32), full.view(np.int32))
        scale, bias = scale_and_bias(low, high, self.bits)
        if not np.isfinite(scale).all():
            return False
        self.scales[block], self.biases[block] = scale, bias
        np.copyto(full, bias)
        np.subtract(values, full, out=work)
        # Equal weights above 3.4e31 get a scale of zero; 0 / 1 is the code of 0 / 0.
        np.copyto(full, np.where(scale == 0, np.float32(1), scale))
        np.divide(work, full, out=work)
        np.rint(work, out=work)
        np.maximum(work, np.float32(0), out=work)
        np.minimum(work, np.float32(2**self.bits - 1), out=work)
        octets = pack_block(work.astype(np.uint8), self.bits)
        self.words[block] = octets.view("<u4").reshape(len(work), -1)
        return True


def _ends(values: Float32, order: Integers, signs: Integers) -> tuple[Float32, Float32]:
    """Find the least and the largest value of every group, `(n, 1)` each."""
    bits = values.view(np.int32)
    np.right_shift(bits, np.int32(31), out=signs)
    np.bitwise_and(signs, _TOP, out=signs)
    np.bitwise_xor(bits, signs, out=order)
    low, high = (_reduce(order, axis=-1, keepdims=True) for _reduce in (np.min, np.max))
    low, high = (each ^ ((each >> np.int32(31)) & _TOP) for each in (low, high))
    return low.view(np.float32), high.view(np.float32)
