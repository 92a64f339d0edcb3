"""Integer codes with a scale and a zero per block, in whatever order they are stored.

Covers GPTQ, AWQ, compressed-tensors, torchao, HQQ, quanto, Quark and their kin. What
their readers disagree on is a field here, and none has a default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from qmanifest.layouts import LAYOUTS
from qmanifest.schemes.base import (
    Extra,
    extra_parts,
    line,
    logical_shape,
    optional_roles,
    packed_shape,
)
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes.base import Parts
    from qmanifest.tensors import Shape

Zeros: TypeAlias = Literal["none", "middle", "code", "shift", "bias"]
"""How the zero of a block is known:

none: there is none, `w = s * c`
middle: `2**(bits - 1)` and not stored, `w = s * (c - middle)`
code: stored, in code units, `w = s * (c - z)`
shift: stored, in weight units, `w = s * c - z`
bias: stored, in weight units, `w = s * c + z`
"""


@dataclass(frozen=True, slots=True)
class Zero:
    """What a block's zero is, and how it is stored."""

    kind: Zeros
    dtypes: tuple[str, ...]
    pack: str
    """Layout of zeros that are packed as codes; empty for one number each."""
    plus: int
    """What readers add to a stored zero: 1 in GPTQ's first format. The sum of a packed
    one wraps around in the bits of a code; readers of that format differ there."""
    signed: bool
    """Whether a packed zero is written as codes are: offset, or two's complement."""
    symmetric: bool = False
    """Whether every zero is promised to be `2**(bits - 1)`, though it is stored."""

    def __str__(self) -> str:
        """Print the kind and what is particular: `code+1`."""
        return f"{self.kind}+{self.plus}" if self.plus else self.kind


NO_ZERO: Final = Zero("none", (), "", 0, signed=False)
"""What a scheme has whose codes are numbers around zero themselves."""


def plain_zero(kind: Zeros, dtypes: tuple[str, ...]) -> Zero:
    """Describe zeros that are stored as one number each, and read as they are."""
    return Zero(kind, dtypes, "", 0, signed=False)


def packed_zero(pack: str, *, plus: int, signed: bool, symmetric: bool = False) -> Zero:
    """Describe zeros in code units that are packed into words as codes are."""
    return Zero("code", ("I32",), pack, plus, signed, symmetric)


Code: TypeAlias = Literal["unsigned", "offset", "signed"]
"""What a stored code is: itself; itself plus `2**(bits - 1)`; two's complement."""
Order: TypeAlias = Literal["sequential", "listed", "may-be-listed"]
"""Which group an input is of: the next `columns` share one; `g_idx` says; `g_idx` says
where it is stored."""


@dataclass(frozen=True, slots=True)
class Integer:
    """`w = scale * (code - zero)`, with `spread` saying which weights share numbers."""

    bits: int
    pack: str
    """Layout of the codes, a key of `qmanifest.layouts.LAYOUTS`."""
    code: Code
    spread: Spread
    """Which weights share a scale and a zero, and how scales are laid out."""
    scale: tuple[str, ...]
    """Dtypes that scales may have."""
    zero: Zero
    order: Order
    arithmetic: Literal["float32", "scale"]
    """What differences, products and sums are rounded to: float32, or the dtype of the
    scales."""
    extras: tuple[Extra, ...] = ()
    """Other tensors that belong to the weight."""
    kind: Literal["integer"] = "integer"

    @property
    def group_size(self) -> int:
        """Inputs that share a scale; 0 for all of a row."""
        return self.spread.columns

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        listed = ("g_idx",) if self.order == "may-be-listed" else ()
        return (*listed, *optional_roles(self.extras))

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the largest weight whose codes are stored in shape `codes`."""
        return logical_shape(codes, self.pack, self.bits)

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        numbers = self.spread.shape(shape) if shape else None
        parts: Parts = (
            (
                "codes",
                (LAYOUTS[self.pack].word_dtype,),
                self._words(shape),
            ),
            ("scales", self.scale, numbers),
        )
        if self.zero.dtypes:
            zeros = numbers
            if self.zero.pack:
                zeros = packed_shape(numbers, self.zero.pack, self.bits)
            parts = (*parts, ("zeros", self.zero.dtypes, zeros))
        if self.order != "sequential":
            inputs = (shape[-1],) if shape else None
            parts = (*parts, ("g_idx", ("I32",), inputs))
        return (*parts, *extra_parts(self.extras))

    def _words(self, shape: Shape | None) -> Shape | None:
        """Shape of the packed codes, or None where the weight has none."""
        table = self.spread.table(shape) if shape else None
        if table is None or math.prod(table) != math.prod(shape or ()):
            return None  # the last block is short, and tables have none
        return packed_shape(table, self.pack, self.bits)

    def __str__(self) -> str:
        """Print the canonical line."""
        return line(
            "integer",
            bits=self.bits,
            code=self.code,
            block=self.spread,
            scale=self.scale,
            zero=self.zero,
            order=self.order,
            pack=self.pack,
        )
