"""Formats whose shapes are known and whose values are not decoded here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from qmanifest.schemes.base import line
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from qmanifest.schemes.base import Parts

Axis: TypeAlias = Literal["N", "K", "one"]


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of a part: `ceil(axis / divisor) * times`."""

    axis: Axis
    """Outputs, inputs, or 1 for a constant."""
    divisor: int = 1
    times: int = 1

    def size(self, n: int, k: int) -> int:
        """Count the elements along the dimension."""
        return -(-{"N": n, "K": k, "one": 1}[self.axis] // self.divisor) * self.times


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """A stored tensor of the format."""

    role: str
    dtypes: tuple[str, ...]
    dims: tuple[Dim, ...] | None
    """None where nothing tells the shape."""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A weight of a format that is recognised and measured, and not decoded."""

    format: str
    """The format's name: `exl3`, `marlin`, ..."""
    bits: int
    """Bits of a code, as far as a whole number says it; 0 where none does."""
    group_size: int
    """Inputs that share a scale; 0 where nothing tells."""
    stored: tuple[OpaquePart, ...]
    """The parts; the first holds the codes."""
    shape: Shape | None = None
    """Logical shape, where other parts than the codes tell it."""
    pack: str = "opaque"
    kind: Literal["opaque"] = "opaque"

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        return tuple(each.role for each in self.stored if each.optional)

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the weight whose codes are stored in shape `codes`, if it shows."""
        dims = self.stored[0].dims
        if self.shape is not None:
            return self.shape
        if dims is None or len(codes) != len(dims):
            return None
        found = {
            dim.axis: size // dim.times * dim.divisor
            for dim, size in zip(dims, codes, strict=True)
            if dim.times
        }
        return (found["N"], found["K"]) if {"N", "K"} <= found.keys() else None

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        return tuple(
            (each.role, each.dtypes, _sizes(each.dims, shape)) for each in self.stored
        )

    def __str__(self) -> str:
        """Print the canonical line."""
        return line(self.format, bits=self.bits or "", group=self.group_size or "")


def _sizes(dims: tuple[Dim, ...] | None, shape: Shape | None) -> Shape | None:
    """Size a part; constant dimensions are known whatever the weight's shape is."""
    if dims is None:
        return None
    if shape is not None and len(shape) > 1:
        n, k = shape[-2:]
        return tuple(dim.size(n, k) for dim in dims)
    constant = all(dim.axis == "one" for dim in dims)
    return tuple(dim.size(0, 0) for dim in dims) if constant else None
