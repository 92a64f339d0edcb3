"""The frame of a fast set of kernels: try what it can do, and leave the rest.

Whatever a set does not take goes to the reference, which also words every refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmanifest.backends.base import require_parts
from qmanifest.kernels import base
from qmanifest.kernels.reference import KERNELS as REFERENCE
from qmanifest.packings.arrays import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.packings.arrays import AnyArray
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class FastKernels:
    """Kernels for weights that are one stream of groups."""

    name: str
    make: Callable[[Stored, int, int, str], base.PackedParts | None]
    """Quantize and pack: weight, bits, group size, dtype of the scales. None where a
    number is not finite."""
    rebuild: Callable[[Scheme, Mapping[str, Stored], Stored], bool]
    """Rebuild a weight from its parts into a target; False where that is not done."""

    def quantize(
        self,
        weight: Stored,
        bits: int,
        group_size: int,
        scale_dtype: str | None = None,
    ) -> base.PackedParts:
        """Quantize and pack: see `Kernels.quantize`."""
        scale = scale_dtype or weight.dtype
        if base.quantizes_fast(weight, bits, group_size, scale):
            made = self.make(weight, bits, group_size, scale)
            if made is not None:
                return made
        return REFERENCE.quantize(weight, bits, group_size, scale_dtype)

    def dequantize(
        self,
        scheme: Scheme,
        parts: Mapping[str, Stored],
        shape: Shape,
        out: AnyArray | None = None,
        dtype: str | None = None,
    ) -> Stored:
        """Rebuild a weight: see `Kernels.dequantize`."""
        require_parts(scheme, parts, shape)
        dtype = base.result_dtype(parts, dtype)
        target = Stored(dtype, base.result_array(dtype, shape, out))
        if base.dequantizes_fast(scheme, shape) and self.rebuild(scheme, parts, target):
            return target
        return REFERENCE.dequantize(scheme, parts, shape, target.array, dtype)
