"""Codes that look a value up in a table, times the largest magnitude of their block.

Source: https://github.com/bitsandbytes-foundation/bitsandbytes, `QuantState`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qmanifest.layouts import LAYOUTS
from qmanifest.schemes.base import NO_ROLES, line, logical_shape, packed_shape

if TYPE_CHECKING:
    from qmanifest.schemes.base import Parts
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class Codebook:
    """`w = table[code] * absmax`, in blocks along the flattened weight."""

    table: Literal["nf4", "fp4"]
    """Values of the codes, a key of `qmanifest.elements.ELEMENTS`."""
    block_size: int
    """Consecutive weights, over the ends of rows, that share an absmax."""
    nested: int
    """Absmax values that share a scale of their own; 0 where they are plain F32."""
    pack: str
    """Layout of the codes, a key of `qmanifest.layouts.LAYOUTS`."""
    kind: Literal["codebook"] = "codebook"

    @property
    def bits(self) -> int:
        """Width of a code."""
        return 4

    @property
    def group_size(self) -> int:
        """Weights that share an absmax."""
        return self.block_size

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        return NO_ROLES

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the largest weight whose codes are stored in shape `codes`."""
        return logical_shape(codes, self.pack, self.bits)

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        blocks = -(-math.prod(shape) // self.block_size) if shape else None
        each = None if blocks is None else (blocks,)
        parts: Parts = (
            (
                "codes",
                (LAYOUTS[self.pack].word_dtype,),
                packed_shape(shape, self.pack, self.bits),
            ),
            ("scales", ("U8",) if self.nested else ("F32",), each),
            ("quant_map", ("F32",), (16,)),
            ("quant_state", ("U8",), None),
        )
        if not self.nested:
            return parts
        several = None if blocks is None else (-(-blocks // self.nested),)
        return (
            *parts,
            ("nested_absmax", ("F32",), several),
            ("nested_quant_map", ("F32",), (256,)),
        )

    def __str__(self) -> str:
        """Print the canonical line."""
        return line(
            "codebook",
            table=self.table,
            block=self.block_size,
            nested=self.nested or "",
            pack=self.pack,
        )
