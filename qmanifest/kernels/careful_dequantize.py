"""Rebuild a block of groups at a time, in numpy.

Every step is one numpy operation over a block that stays in a core's cache, and the
last of them writes into the result. Small floats are looked up by bytes: two of 4 bits
are moved as one number of 8 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.kernels.base import are_finite
from qmanifest.kernels.careful_halves import (
    HALF_RANGE,
    round_to_bfloat16,
    round_to_halves,
    to_bfloat16,
    to_halves,
)
from qmanifest.kernels.careful_unpack import unpack_block
from qmanifest.kernels.microscales import byte_values, group_scales
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, to_float32
from qmanifest.schemes import Microscaling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.packings.arrays import AnyArray, Codes, Float32
    from qmanifest.schemes import Scheme

_BLOCK: Final = 1 << 18
"""Elements of a block: a megabyte of float32; see `careful_quantize`."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A stream of groups; to call one with a range of groups rebuilds those."""

    bits: int
    octets: Codes
    """`(groups, bytes of a group)`."""
    table: AnyArray | None
    """What the codes of every byte stand for, as `byte_values`; None: themselves."""
    scales: Float32
    """`(groups, 1)`, as `biases`."""
    biases: Float32 | None
    rounding: str
    """Dtype that the product and the sum are each rounded to."""
    dtype: str
    values: AnyArray
    """The result, `(groups, group_size)`, stored as `dtype`."""
    most: float
    """No product or sum is larger; NaN where the table has one."""

    @classmethod
    def of(
        cls, scheme: Scheme, parts: Mapping[str, Stored], target: Stored
    ) -> Groups | None:
        """Arrange a weight; None where a scale or a bias is not finite."""
        values = target.array.reshape(-1, scheme.group_size)
        octets = np.ascontiguousarray(parts["codes"].array).view(np.uint8)
        octets = octets.reshape(len(values), -1)
        if isinstance(scheme, Microscaling):
            scales = group_scales(scheme, parts, target.shape)
            if scales is None:
                return None
            table, factors = byte_values(scheme), scales.reshape(-1, 1)
            most = _largest(table.view(np.float32)) * _largest(scales)
            stored = "F32", target.dtype, values, most
            return cls(scheme.bits, octets, table, factors, None, *stored)
        scale, bias = parts["scales"], parts["biases"]
        if not are_finite(scale, bias):
            return None
        factors, terms = (to_float32(each).reshape(-1, 1) for each in (scale, bias))
        most = _largest(factors) * 2.0**scheme.bits + _largest(terms)
        stored = scale.dtype, target.dtype, values, most
        return cls(scheme.bits, octets, None, factors, terms, *stored)

    def __call__(self, groups: tuple[int, int]) -> bool:
        """Rebuild a range of groups; always True."""
        first, last = groups
        size = self.values.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):
            for each in row_blocks(last - first, size, _BLOCK):
                self._block(slice(first + each.start, first + each.stop))
        return True

    def _block(self, block: slice) -> None:
        """Rebuild some groups; the last operation writes to the result if it can."""
        work, scales = self._of_codes(block), self.scales[block]
        values = self.values[block]
        direct = self.dtype == self.rounding == "F32"
        if self.biases is None:
            np.multiply(work, scales, out=values if direct else work)
        else:
            np.multiply(work, scales, out=work)
            self._round(work, self.rounding)
            np.add(work, self.biases[block], out=values if direct else work)
            if self.rounding != self.dtype:
                self._round(work, self.rounding)
        if not direct:
            values[...] = self._stored(work)

    def _round(self, values: Float32, dtype: str) -> None:
        """Round to `dtype`, in place, half to even; no value is NaN."""
        if dtype == "BF16":
            round_to_bfloat16(values)
        elif dtype == "F16" and self.most <= HALF_RANGE:
            round_to_halves(values)
        elif dtype == "F16":
            np.copyto(values, values.astype("<f2"))

    def _stored(self, work: Float32) -> AnyArray:
        """Round finished values to the dtype of the result; they are lost."""
        if self.dtype == "BF16":
            return to_bfloat16(work)
        if self.dtype == "F16" and self.most <= HALF_RANGE:
            return to_halves(work)
        return from_float32(work, self.dtype).array

    def _of_codes(self, block: slice) -> Float32:
        """Find what the codes of a block stand for, before any scale; an own array."""
        octets = self.octets[block]
        if self.table is not None:
            return np.take(self.table, octets).view(np.float32)
        codes = unpack_block(octets.reshape(-1), self.bits)
        return codes.reshape(-1, self.values.shape[1]).astype(np.float32)


def _largest(values: Float32) -> float:
    """Find the largest magnitude; NaN where a value is that."""
    return max(float(values.max()), -float(values.min()))
