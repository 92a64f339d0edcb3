"""The kernels in numpy alone: for where numba is not, and faster than the reference.

They differ from the reference in what memory they touch, never in a result: blocks that
stay in a core's cache, results written into arrays that exist, and two threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.kernels import base
from qmanifest.kernels.careful_dequantize import Groups
from qmanifest.kernels.careful_quantize import Quantizing
from qmanifest.kernels.fast import FastKernels
from qmanifest.threads import over_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Scheme


def _make(
    weight: Stored, bits: int, group_size: int, scale: str
) -> base.PackedParts | None:
    """Quantize by blocks of groups; None where one is not finite."""
    work = Quantizing(weight, bits, group_size)
    if not over_groups(work, len(work.scales), group_size):
        return None
    made = work.finished(scale)
    return made if base.are_finite(made.scales, made.biases) else None


def _rebuild(scheme: Scheme, parts: Mapping[str, Stored], target: Stored) -> bool:
    """Rebuild by blocks of groups; say whether that could be done."""
    work = Groups.of(scheme, parts, target)
    if work is None:
        return False
    over_groups(work, len(work.scales), scheme.group_size)
    return True


KERNELS: Final[Kernels] = FastKernels("careful", _make, _rebuild)
