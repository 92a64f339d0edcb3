"""What every backend needs: where weights come from, and the check of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from qmanifest.dtypes import FLOAT
from qmanifest.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

AMAX_UNIT: Final = 6.0 * 448.0
"""The largest e2m1 times the largest e4m3: the magnitude of a global scale of 1."""


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

    Raises:
        BackendError: one is absent, or of another dtype or shape.

    """
    if not shape:
        raise BackendError(f"a scalar cannot be stored as {scheme}")
    for role, dtypes, expected in scheme.parts(shape):
        part = parts.get(role)
        if part is None:
            raise BackendError(f"{scheme} needs a tensor of {role}; none was given")
        if expected is None:
            raise BackendError(
                f"a row of {shape[-1]} codes of {scheme.bits} bits is not a whole "
                f"number of {scheme.pack} words"
            )
        allowed = _computable(dtypes)
        if part.dtype not in allowed or part.shape != expected:
            raise BackendError(
                f"{role} are {part.dtype} {list(part.shape)}; {scheme} of shape "
                f"{list(shape)} expects {'|'.join(allowed)} {list(expected)}"
            )
    if scheme.kind == "affine" and parts["biases"].dtype != parts["scales"].dtype:
        raise BackendError(
            f"biases are {parts['biases'].dtype} and scales "
            f"{parts['scales'].dtype}; they must have one dtype"
        )


def _computable(dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Widen promised dtypes to those a backend can use: any float is as good."""
    if not set(dtypes) & set(FLOAT):
        return dtypes
    return tuple(dict.fromkeys((*dtypes, *FLOAT)))
