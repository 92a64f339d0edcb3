"""Rebuild a block of groups at a time, in numpy.

Codes of 2 and 4 bits are whole in every byte, so that one look-up in a table of 256
rows gives the values of a byte: four or two floats, moved as one number of 16 or 8
bytes. Other widths are unpacked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qmanifest.kernels.base import are_finite
from qmanifest.kernels.microscales import code_values, group_scales
from qmanifest.packings import u32_lsb
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, to_float32
from qmanifest.schemes import Microscaling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.packings.arrays import AnyArray, Float32
    from qmanifest.schemes import Scheme

_BLOCK: Final = 1 << 16
_BYTES: Final[dict[int, np.dtype[Any]]] = {
    2: np.dtype(np.complex128),
    4: np.dtype(np.complex64),
}
"""What is as wide as the floats of one byte, by the width of its codes."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A stream of groups; to call one with a range of groups rebuilds those."""

    bits: int
    octets: AnyArray
    """`(groups, bytes of a group)`."""
    table: Float32
    """What every code stands for, `(2**bits,)`."""
    scales: Float32
    """`(groups, 1)`, as `biases`."""
    biases: Float32 | None
    rounding: str
    """Dtype that the product and the sum are each rounded to."""
    dtype: str
    values: AnyArray
    """The result, `(groups, group_size)`, stored as `dtype`."""

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
            table, factors = code_values(scheme), scales.reshape(-1, 1)
            stored = "F32", target.dtype, values
            return cls(scheme.bits, octets, table, factors, None, *stored)
        scale, bias = parts["scales"], parts["biases"]
        if not are_finite(scale, bias):
            return None
        factors, terms = (to_float32(each).reshape(-1, 1) for each in (scale, bias))
        table = np.arange(2**scheme.bits, dtype=np.float32)
        stored = scale.dtype, target.dtype, values
        return cls(scheme.bits, octets, table, factors, terms, *stored)

    def __call__(self, groups: tuple[int, int]) -> bool:
        """Rebuild a range of groups; always True."""
        first, last = groups
        by_byte = self._values_of_bytes()
        for each in row_blocks(last - first, self.values.shape[1], _BLOCK):
            block = slice(first + each.start, first + each.stop)
            work = self._codes(block, by_byte)
            full = np.empty_like(work)
            with np.errstate(over="ignore", invalid="ignore"):
                np.copyto(full, self.scales[block])
                np.multiply(work, full, out=work)
                if self.biases is not None:
                    _round(work, full, self.rounding)
                    np.copyto(full, self.biases[block])
                    np.add(work, full, out=work)
                    _round(work, full, self.rounding)
            self.values[block] = self._stored(work)
        return True

    def _stored(self, work: Float32) -> AnyArray:
        """Give finished values the dtype of the result."""
        if self.dtype == self.rounding == "BF16":
            return work.view("<u2")[:, 1::2]
        return from_float32(work, self.dtype).array

    def _values_of_bytes(self) -> AnyArray | None:
        """List what the codes of every byte stand for, as one number each."""
        whole = _BYTES.get(self.bits)
        if whole is None:
            return None
        every = np.arange(256, dtype=np.uint8)
        codes = [every >> at & (2**self.bits - 1) for at in range(0, 8, self.bits)]
        rows: AnyArray = np.ascontiguousarray(self.table[np.stack(codes, axis=-1)])
        return rows.view(whole).reshape(-1)

    def _codes(self, block: slice, by_byte: AnyArray | None) -> Float32:
        """Find what the codes of a block stand for, before any scale."""
        octets = self.octets[block]
        if by_byte is not None:
            return np.take(by_byte, octets).view(np.float32)
        count = self.values.shape[1]
        whole = octets.shape[1] // 4 * 4
        if whole == octets.shape[1]:
            codes = u32_lsb.unpack(octets.view("<u4"), self.bits, count)
        else:
            stream = np.pad(octets, ((0, 0), (0, whole + 4 - octets.shape[1])))
            codes = u32_lsb.unpack(stream.view("<u4"), self.bits, count)
        return (
            codes.astype(np.float32) if self.biases is not None else self.table[codes]
        )


def _round(values: Float32, space: Float32, dtype: str) -> None:
    """Round values that are not NaN to `dtype`, in place, half to even."""
    if dtype == "BF16":
        bits, half = values.view("<u4"), space.view("<u4")
        np.right_shift(bits, np.uint32(16), out=half)
        np.bitwise_and(half, np.uint32(1), out=half)
        np.add(half, np.uint32(0x7FFF), out=half)
        np.add(bits, half, out=bits)
        np.bitwise_and(bits, np.uint32(0xFFFF0000), out=bits)
    elif dtype == "F16":
        np.copyto(values, values.astype("<f2"))
