"""Sizes as data: one row per stored tensor, their sums, and groups of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from qmanifest.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qmanifest.tensors import Shape

Grouping: TypeAlias = Literal["part", "layer", "bits", "dtype"]
"""What the rows of `Sizes.group` stand for."""

DENSE: Final = "dense"
_ROLES: Final = ("codes", "scales", "biases", "zeros", "global_scale")
"""The roles in their order; others follow them by name, and what is dense is last."""


@dataclass(frozen=True, slots=True)
class PartSize:
    """The size of one stored tensor."""

    component: str
    weight: str
    """The logical weight that the tensor is part of; a dense tensor is its own."""
    tensor: str
    role: str
    """As `TensorSpec.role`; `dense` for whatever is not quantized."""
    dtype: str
    shape: Shape
    """As stored."""
    nbytes: int
    bits: int
    """Width of the weight's codes, or of a dense element; 0 where nothing says it."""
    parameters: int
    """Logical elements, on the row of codes or dense; companions have none."""

    @property
    def kept(self) -> bool:
        """Whether the tensor is not quantized."""
        return self.role == DENSE

    @property
    def layer(self) -> str:
        """The weight's layer, as `layer_of` finds it, after its component's name."""
        layer = layer_of(self.weight)
        return f"{self.component}: {layer}" if self.component else layer


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The sum of some rows."""

    label: str
    tensors: int
    parameters: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Exact bytes of a checkpoint by stored tensor, and the sums of them."""

    rows: tuple[PartSize, ...]
    overhead: int = 0
    """Bytes of file headers."""
    repeated: int = 0
    """Bytes of further tensors of a name that a row has; in `total` only."""
    unknown: tuple[str, ...] = ()
    """Sentences on what is not counted."""
    assumed: tuple[str, ...] = ()
    """Sentences on what is counted in one of several allowed forms."""

    def __add__(self, more: Sizes) -> Sizes:
        return Sizes(
            self.rows + more.rows,
            self.overhead + more.overhead,
            self.repeated + more.repeated,
            self.unknown + more.unknown,
            self.assumed + more.assumed,
        )

    def _bytes(self, *roles: str) -> int:
        return sum(row.nbytes for row in self.rows if row.role in roles)

    @property
    def codes(self) -> int:
        """Bytes of packed codes."""
        return self._bytes("codes")

    @property
    def scales(self) -> int:
        """Bytes of scales."""
        return self._bytes("scales")

    @property
    def biases(self) -> int:
        """Bytes of biases in weight units; a layer's own `X.bias` is not one."""
        return self._bytes("biases")

    @property
    def other(self) -> int:
        """Bytes of zero points, global scales, and whatever else serves a weight."""
        known = {"codes", "scales", "biases", DENSE}
        return sum(row.nbytes for row in self.rows if row.role not in known)

    @property
    def kept(self) -> int:
        """Bytes of everything that is not quantized."""
        return self._bytes(DENSE)

    @property
    def total(self) -> int:
        """Bytes of all of it, headers and repeated tensors included."""
        return sum(row.nbytes for row in self.rows) + self.overhead + self.repeated

    @property
    def parameters(self) -> int:
        """Logical elements; packed words never count as such."""
        return sum(row.parameters for row in self.rows)

    @property
    def quantized_parameters(self) -> int:
        """Logical elements of quantized weights."""
        return sum(row.parameters for row in self.rows if not row.kept)

    @property
    def bits_per_weight(self) -> Fraction | None:
        """Exact bits per quantized parameter, companions included; None without any.

        A weight whose parameters nothing tells is left out on both sides.
        """
        told = {(row.component, row.weight) for row in self.rows if row.parameters}
        rows = [
            row
            for row in self.rows
            if not row.kept and (row.component, row.weight) in told
        ]
        return _ratio(rows, sum(row.parameters for row in rows))

    @property
    def bits_per_weight_all(self) -> Fraction | None:
        """The same over all tensors; None while any size is unknown."""
        return None if self.unknown else _ratio(self.rows, self.parameters)

    @property
    def as_16bit(self) -> int:
        """Bytes of the counted tensors with every number a 16-bit float.

        Dense tensors that hold integers, booleans or complex numbers stay as they are.
        """
        return sum(
            2 * row.parameters
            if not row.kept or row.dtype.startswith(("F", "BF"))
            else row.nbytes
            for row in self.rows
        )

    def group(self, by: Grouping) -> tuple[GroupSize, ...]:
        """Sum the rows by role, layer, code width or dtype, in the natural order."""
        groups: dict[tuple[object, ...], list[PartSize]] = defaultdict(list)
        for row in self.rows:
            groups[_KEYS[by](row)].append(row)
        return tuple(
            GroupSize(
                _LABELS[by](rows[0]),
                len(rows),
                sum(row.parameters for row in rows),
                sum(row.nbytes for row in rows),
            )
            for _, rows in sorted(groups.items(), key=lambda item: item[0])
        )


def layer_of(name: str) -> str:
    """Find a tensor's layer: its path up to the first number, or its first segment.

    >>> layer_of("encoder.layer.0.output.dense.weight"), layer_of("table.weight")
    ('encoder.layer.0', 'table')
    """
    segments = name.split(".")
    for count, segment in enumerate(segments, 1):
        if segment.isascii() and segment.isdigit():
            return ".".join(segments[:count])
    return segments[0]


def _natural(layer: str) -> tuple[tuple[int, str], ...]:
    """Order numbers by size: by their length, then by their digits."""
    return tuple(
        (len(segment.lstrip("0")) if segment.isdigit() else 0, segment)
        for segment in layer.split(".")
    )


def _ratio(rows: Sequence[PartSize], parameters: int) -> Fraction | None:
    """Bits of `rows` per parameter, exactly."""
    if not parameters:
        return None
    return Fraction(8 * sum(row.nbytes for row in rows), parameters)


def _bits_label(row: PartSize) -> str:
    width = f"{row.bits}-bit" if row.bits else "unknown"
    return f"{width} kept" if row.kept else width


def _rank(role: str) -> int:
    return _ROLES.index(role) if role in _ROLES else len(_ROLES)


_KEYS: Final[dict[Grouping, Callable[[PartSize], tuple[object, ...]]]] = {
    "part": lambda row: (row.kept, _rank(row.role), row.role),
    "layer": lambda row: (row.component, *_natural(layer_of(row.weight))),
    "bits": lambda row: (row.kept, row.bits),
    "dtype": lambda row: (list(DTYPES).index(row.dtype),),
}
_LABELS: Final[dict[Grouping, Callable[[PartSize], str]]] = {
    "part": lambda row: "kept" if row.kept else row.role,
    "layer": lambda row: row.layer,
    "bits": _bits_label,
    "dtype": lambda row: row.dtype,
}
