"""Spreads: which weights share one scale or zero, and how those numbers are laid out.

A spread covers a weight `(..., out_features, in_features)` with blocks, and says in
what shape the numbers of all blocks are stored. No numpy here, as in `layouts`; the
numbers are moved by `qmanifest.packings.spreading`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Form: TypeAlias = Literal[
    "table",
    "transposed",
    "spaced",
    "vector",
    "one",
    "scalar",
    "flat",
    "flat-column",
    "flat-row",
    "swizzled",
    "awq-rows",
    "awq-columns",
]
"""How the numbers of the blocks are stored, for N outputs, K inputs, R x C blocks:

table: `(..., R, C)`
transposed: `(..., C, R)`
spaced: `(R, 1, C, 1)`, of a weight without experts
vector: `(R,)`, with blocks that span all inputs
one, scalar: `(1,)` and `()`, one number for the whole weight
flat, flat-column: `(B,)` and `(B, 1)`, for B blocks of `columns` weights that follow
    each other in the flattened weight; blocks may straddle rows
flat-row: `(1, B)`, for B blocks of `columns` weights that are B apart in it
swizzled: tiles of 128 x 4 numbers, as tensor cores read them, padded with zeros
awq-rows: `(N, W)`, and awq-columns: `(W, N)`, padded with zeros to the W that AWQ's
    GEMV kernels read
"""

PADDED_FORMS: Final = ("swizzled", "awq-rows", "awq-columns")
"""Those that are filled up with zeros."""
TILE: Final = (128, 4)
"""Numbers of a swizzled tile: rows, columns."""


def _blocks(length: int, size: int) -> int:
    """Count the blocks of `size` that cover `length`; 0 is one block for all of it."""
    return -(-length // size) if size else 1


@dataclass(frozen=True, slots=True)
class Spread:
    """Blocks of `rows` outputs by `columns` inputs share one number each."""

    rows: int
    """Outputs of a block; 0 for all of them."""
    columns: int
    """Inputs of a block; 0 for all of them."""
    form: Form = "table"

    def shape(self, weight: Shape) -> Shape:
        """Shape that the numbers of a weight of shape `weight` are stored in."""
        lead, (n, k) = weight[:-2], (1, 1, *weight)[-2:]
        rows, columns = _blocks(n, self.rows), _blocks(k, self.columns)
        every = _blocks(math.prod(weight), self.columns)
        padded = 8 * _words_of_zeros(columns, self.columns)
        shapes: dict[Form, Shape] = {
            "table": (*weight[:-2], rows, columns) if weight[1:] else (columns,),
            "transposed": (*lead, columns, rows),
            "spaced": (rows, 1, columns, 1),
            "vector": (rows,),
            "one": (1,),
            "scalar": (),
            "flat": (every,),
            "flat-column": (every, 1),
            "flat-row": (1, every),
            "swizzled": (*lead, 32 * _blocks(rows, 128), 16 * _blocks(columns, 4)),
            "awq-rows": (n, padded),
            "awq-columns": (padded, n),
        }
        return shapes[self.form]

    def table(self, weight: Shape) -> Shape:
        """Shape that the codes of a weight are arranged in before they are packed.

        That of the weight, or where blocks are counted along the flattened weight and
        their numbers are a column or a row, a table with a row or a column for each.
        """
        blocks = _blocks(math.prod(weight), self.columns)
        size = self.columns or math.prod(weight)
        if self.form == "flat-column":
            return (blocks, size)
        return (size, blocks) if self.form == "flat-row" else weight

    def __str__(self) -> str:
        """Print the blocks and the form: `1x128 transposed`, `all x128`."""
        sides = "x".join(str(side or "all") for side in (self.rows, self.columns))
        return sides if self.form == "table" else f"{sides} {self.form}"


def _words_of_zeros(groups: int, group_size: int) -> int:
    """Count the words of eight zeros that AWQ's GEMV kernels expect per output.

    Source: https://github.com/casper-hansen/AutoAWQ, `calculate_zeros_width`.
    """
    multiple = {32: 4, 64: 2}.get(group_size, 1)
    return multiple * _blocks(_blocks(groups, 8), multiple)
