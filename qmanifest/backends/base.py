"""What every backend needs: where weights come from, and the check of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from qmanifest.dtypes import FLOAT
from qmanifest.errors import BackendError
from qmanifest.schemes import Integer, Scaled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

AMAX_UNIT: Final = 6.0 * 448.0
"""The largest e2m1 times the largest e4m3: the magnitude of a global scale of 1."""

_UNSHAPED: Final = ("quant_state",)
"""Roles of parts of no certain length, which those who read them check."""


class MissingLibraryError(BackendError, ImportError):
    """The library that a backend computes with is not installed."""


class WeightSource(Protocol):
    """Anything that hands out the weights of one model by name."""

    def names(self) -> Iterable[str]:
        """Names of the quantized weights: `X.weight`, as in the 16-bit model."""
        ...

    def weight(self, name: str) -> tuple[Scheme, Shape]:
        """Scheme and logical shape of a quantized weight."""
        ...

    def stored(self, name: str) -> Mapping[str, Stored]:
        """Parts of a quantized weight by role: `codes`, `scales`, ..."""
        ...

    def dense_names(self) -> Iterable[str]:
        """Names of the tensors that belong to no quantized weight."""
        ...

    def dense(self, name: str) -> Stored | None:
        """Find the tensor of one of `dense_names`, or None where there is none."""
        ...


def require_parts(scheme: Scheme, parts: Mapping[str, Stored], shape: Shape) -> None:
    """Refuse parts that cannot be those of a weight of `scheme` and `shape`.

    Parts that readers do without, and those that have no bearing on the weight, may be
    absent.

    Raises:
        BackendError: the scheme's values are not decoded, or a part is absent or of
            another dtype or shape.

    """
    if scheme.kind == "opaque":
        raise BackendError(f"values of {scheme} are not decoded")
    if not shape:
        raise BackendError(f"a scalar cannot be stored as {scheme}")
    if min(shape) < 0:
        raise BackendError(f"no weight has the shape {list(shape)}")
    beside = beside_the_weight(scheme)
    for role, dtypes, expected in scheme.parts(shape):
        part = parts.get(role)
        if part is None:
            if role in scheme.optional or role in beside:
                continue
            raise BackendError(f"{scheme} needs a tensor of {role}; none was given")
        if expected is None and role not in (*beside, *_UNSHAPED):
            raise BackendError(
                f"a row of {shape[-1]} codes of {scheme.bits} bits is not a whole "
                f"number of {scheme.pack} words"
            )
        allowed = _computable(dtypes)
        if part.dtype not in allowed or expected not in (None, part.shape):
            size = "of any shape" if expected is None else list(expected)
            raise BackendError(
                f"{role} are {part.dtype} {list(part.shape)}; {scheme} of shape "
                f"{list(shape)} expects {'|'.join(allowed)} {size}"
            )
    if scheme.kind == "affine" and parts["biases"].dtype != parts["scales"].dtype:
        raise BackendError(
            f"biases are {parts['biases'].dtype} and scales "
            f"{parts['scales'].dtype}; they must have one dtype"
        )


def beside_the_weight(scheme: Scheme) -> frozenset[str]:
    """Roles of the parts that have no bearing on what the weight is."""
    if isinstance(scheme, Integer | Scaled):
        return frozenset(extra.role for extra in scheme.extras)
    return frozenset()


def _computable(dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Widen promised dtypes to those a backend can use: any float is as good."""
    if not set(dtypes) & set(FLOAT):
        return dtypes
    return tuple(dict.fromkeys((*dtypes, *FLOAT)))
