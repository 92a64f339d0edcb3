"""What every scheme has, and the parts that a scheme promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.errors import LayoutError
from qmanifest.layouts import LAYOUTS
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from collections.abc import Iterable

Parts: TypeAlias = tuple[tuple[str, tuple[str, ...], Shape | None], ...]
"""Role, allowed dtypes and shape of every stored tensor of a weight."""
NO_ROLES: Final[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class Extra:
    """A part beside codes and scales that has a shape of its own, or none known."""

    role: str
    dtypes: tuple[str, ...]
    shape: Shape | None = None
    optional: bool = False
    """Whether readers do without it."""
    value: int | None = None
    """The number that it has to hold, where the scheme says it."""


def packed_shape(shape: Shape | None, pack: str, bits: int) -> Shape | None:
    """Shape of the packed codes of a weight, or None where it has none."""
    if not shape:
        return None
    try:
        return LAYOUTS[pack].packed_shape(shape, bits)
    except LayoutError:
        return None


def logical_shape(codes: Shape, pack: str, bits: int) -> Shape | None:
    """Shape of the largest weight whose codes are stored in shape `codes`, if any."""
    try:
        return LAYOUTS[pack].logical_shape(codes, bits)
    except LayoutError:
        return None


def extra_parts(extras: Iterable[Extra]) -> Parts:
    """Promise the extras as parts."""
    return tuple((each.role, each.dtypes, each.shape) for each in extras)


def optional_roles(extras: Iterable[Extra]) -> tuple[str, ...]:
    """Roles of the extras that may be absent."""
    return tuple(each.role for each in extras if each.optional)


def line(kind: str, **values: object) -> str:
    """Print a canonical line: `kind(name=value, ...)`, without what is empty."""
    said = (
        f"{name}={'|'.join(value) if isinstance(value, tuple) else value}"
        for name, value in values.items()
        if value not in ((), "", None)
    )
    return f"{kind}({', '.join(said)})"
