"""What kernels do: make packed weights and rebuild them, with no bit of difference.

To add a set of kernels, write its two functions, put them into `fast.FastKernels`, and
name the set in `qmanifest.kernels`. What it cannot do is handed to the reference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from qmanifest.dtypes import FLOAT
from qmanifest.errors import BackendError, PackingError
from qmanifest.packings.arrays import Stored, storage_dtype
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from qmanifest.packings.arrays import AnyArray
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

FAST_GROUPS: Final = (32, 64, 128)
"""Group sizes that fast kernels quantize; rows of such groups are whole words."""
_GROUP_STEP: Final = 16
EXPONENTS: Final = {"F32": 0x7F800000, "F16": 0x7C00, "BF16": 0x7F80}
"""The bits of infinity; those of NaN are larger."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedParts:
    """An affine weight as `pack` writes it."""

    words: npt.NDArray[np.uint32]
    """`(..., out_features, in_features * bits / 32)`, packed as `u32-lsb`."""
    scales: Stored
    """`(..., out_features, in_features / group_size)`; may be negative."""
    biases: Stored
    """As `scales`; in weight units."""


class Kernels(Protocol):
    """One set of kernels; the result is the same with every set, bit for bit."""

    @property
    def name(self) -> str:
        """What reports and measurements call the set."""
        ...

    def quantize(
        self,
        weight: Stored,
        bits: int,
        group_size: int,
        scale_dtype: str | None = None,
    ) -> PackedParts:
        """Quantize as `quantize_affine` does, and pack as `u32-lsb`.

        Args:
            weight: `(..., out_features, in_features)`, F32, F16 or BF16.
            bits: width of a code, 1 to 8.
            group_size: consecutive input features that share a scale and a bias.
            scale_dtype: F32, F16 or BF16; the weight's own dtype by default.

        Raises:
            LayoutError: a row of codes is not a whole number of words.
            PackingError: as `quantize_affine`.

        """
        ...

    def dequantize(
        self,
        scheme: Scheme,
        parts: Mapping[str, Stored],
        shape: Shape,
        out: AnyArray | None = None,
        dtype: str | None = None,
    ) -> Stored:
        """Rebuild a weight as the reference does, and round it to `dtype`.

        Args:
            scheme: what the parts mean.
            parts: the stored tensors by role, as in `scheme.parts`.
            shape: logical, `(..., out_features, in_features)`.
            out: a contiguous array of `shape` to write to, in the storage of `dtype`.
                With one, nothing large is allocated.
            dtype: F32, F16 or BF16; the scales' by default, and F32 where scales are
                no such floats.

        Returns:
            The weight in `dtype`; its array is `out` where that was given.

        Raises:
            BackendError: a part is absent, or of another dtype or shape; or `out` is
                not as described.
            PackingError: `dtype` is none of those.

        """
        ...


def result_dtype(parts: Mapping[str, Stored], dtype: str | None) -> str:
    """Find the dtype that a rebuilt weight has.

    Raises:
        PackingError: the caller's is no float that weights are rounded to.

    """
    if dtype is not None:
        if dtype not in FLOAT:
            raise PackingError(f"a weight is rebuilt as {'|'.join(FLOAT)}, not {dtype}")
        return dtype
    scales = parts.get("scales")
    return scales.dtype if scales and scales.dtype in FLOAT else "F32"


def result_array(dtype: str, shape: Shape, out: AnyArray | None) -> AnyArray:
    """Take the caller's array, or make one.

    Raises:
        BackendError: the caller's array cannot hold the weight.

    """
    storage = storage_dtype(dtype)
    if out is None:
        return np.empty(shape, storage)
    flags = out.flags
    if out.shape != shape or out.dtype != storage or not flags.c_contiguous:
        raise BackendError(
            f"`out` is {out.dtype} {list(out.shape)}; a {dtype} weight needs a "
            f"contiguous array of {storage} {list(shape)}"
        )
    if not flags.writeable:
        raise BackendError("`out` cannot be written to; pass an array that can")
    return out


def are_finite(*stored: Stored) -> bool:
    """Tell whether no number is NaN or infinite, from the bits of the exponents."""
    return all(_is_finite(each) for each in stored)


def _is_finite(stored: Stored) -> bool:
    exponent = EXPONENTS[stored.dtype]
    kind = f"<u{stored.array.itemsize}"
    bits = np.ascontiguousarray(stored.array).reshape(-1).view(kind)
    mask = bits.dtype.type((1 << (8 * bits.itemsize - 1)) - 1)
    return not bits.size or int((bits & mask).max()) < exponent


def quantizes_fast(weight: Stored, bits: int, group_size: int, scale: str) -> bool:
    """Tell whether fast kernels take such a weight, which also means that it is valid.

    A row must be whole groups, so that the weight is one stream of groups.
    """
    return (
        group_size in FAST_GROUPS
        and 1 < bits <= 8  # noqa: PLR2004 - codes are uint8; 1 bit has a rule of its own
        and weight.dtype in FLOAT
        and scale in FLOAT
        and weight.array.size > 0
        and weight.array.ndim > 0
        and weight.shape[-1] % group_size == 0
    )


def dequantizes_fast(scheme: Scheme, shape: Shape) -> bool:
    """Tell whether a weight with parts of the right shapes is one stream of groups."""
    kinds = isinstance(scheme, Affine) or scheme.kind == "microscaling"
    whole = scheme.group_size % _GROUP_STEP == 0 and shape[-1] % scheme.group_size == 0
    return kinds and whole and math.prod(shape) > 0
