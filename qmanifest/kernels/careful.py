"""The kernels in numpy alone: for where numba is not, and faster than the reference.

They differ from the reference in what memory they touch, never in a result: blocks that
stay in a core's cache, results written into arrays that exist, and two threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.backends.base import require_parts
from qmanifest.kernels import base
from qmanifest.kernels.careful_dequantize import Groups
from qmanifest.kernels.careful_quantize import Quantizing
from qmanifest.kernels.reference import KERNELS as REFERENCE
from qmanifest.kernels.threads import over_groups
from qmanifest.packings.arrays import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import AnyArray
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape


class CarefulKernels:
    """Blocks of groups; what they cannot do goes to the reference."""

    name: Final = "careful"

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
            work = Quantizing(weight, bits, group_size)
            if over_groups(work, len(work.scales), group_size):
                made = work.finished(scale)
                if base.are_finite(made.scales, made.biases):
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
        if base.dequantizes_fast(scheme, shape):
            work = Groups.of(scheme, parts, target)
            if work is not None:
                over_groups(work, len(work.scales), scheme.group_size)
                return target
        return REFERENCE.dequantize(scheme, parts, shape, target.array, dtype)


KERNELS: Final[Kernels] = CarefulKernels()
