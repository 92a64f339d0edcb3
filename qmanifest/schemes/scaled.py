"""Codes that are small numbers themselves, times a scale per block.

Covers FP8, NVFP4, MXFP4, MXFP6 and MXFP8 as other libraries than MLX store them, and
int8 with a scale per row. In which direction a second scale acts is a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from qmanifest.elements import ELEMENTS
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
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from qmanifest.schemes.base import Parts

Global: TypeAlias = Literal["none", "multiply", "divide"]
"""What a weight's second scale does: `s * g`, or `s / g`."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """`w = element(code) * scale`, with `spread` saying which weights share a scale."""

    element: str
    """Number format of a code, a key of `qmanifest.elements.ELEMENTS`."""
    pack: str
    """Layout of the codes, a key of `qmanifest.layouts.LAYOUTS`."""
    spread: Spread
    scale: tuple[str, ...]
    """Dtypes that scales may have."""
    scale_format: str
    """`float`, or what a scale's byte is: `e8m0` or `e4m3`."""
    global_scale: Global
    rounds: Literal["float32", "scale", "BF16"]
    """What a product is rounded to; `scale` is the dtype of the scales."""
    factor: float = 1.0
    """A constant that the format multiplies by."""
    global_shape: Shape = ()
    """Shape of the second scale, for a weight without experts."""
    extras: tuple[Extra, ...] = ()
    """Other tensors that belong to the weight."""
    kind: Literal["scaled"] = "scaled"

    @property
    def bits(self) -> int:
        """Width of a code."""
        return ELEMENTS[self.element].bits

    @property
    def group_size(self) -> int:
        """Inputs that share a scale; 0 for all of a row."""
        return self.spread.columns

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        return optional_roles(self.extras)

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the largest weight whose codes are stored in shape `codes`."""
        return logical_shape(codes, self.pack, self.bits)

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        parts: Parts = (
            (
                "codes",
                (LAYOUTS[self.pack].word_dtype,),
                packed_shape(shape, self.pack, self.bits),
            ),
            ("scales", self.scale, self.spread.shape(shape) if shape else None),
        )
        if self.global_scale != "none":
            experts = (shape[:-2] or self.global_shape) if shape else None
            parts = (*parts, ("global_scale", ("F32",), experts))
        return (*parts, *extra_parts(self.extras))

    def __str__(self) -> str:
        """Print the canonical line."""
        scales = "" if self.global_scale == "none" else self.global_scale
        return line(
            "scaled",
            element=self.element,
            block=self.spread,
            scale=self.scale if self.scale_format == "float" else self.scale_format,
            **{"global": scales},
            pack=self.pack,
        )
