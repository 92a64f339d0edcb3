"""The schemes of MLX's layout: rows of packed codes, one number per group of inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qmanifest.elements import ELEMENTS
from qmanifest.layouts import LAYOUTS
from qmanifest.schemes.base import NO_ROLES, logical_shape, packed_shape

if TYPE_CHECKING:
    from qmanifest.schemes.base import Parts
    from qmanifest.tensors import Shape


def _sizes(
    shape: Shape | None, pack: str, bits: int, group_size: int
) -> tuple[Shape | None, Shape | None]:
    """Shapes of the packed codes and of one number per group, as far as they go.

    A row that fills no whole words has no packed shape, a scalar has neither. The
    last group of a row may be short.
    """
    if not shape:
        return None, None
    groups = (*shape[:-1], -(-shape[-1] // group_size))
    return packed_shape(shape, pack, bits), groups


@dataclass(frozen=True, slots=True)
class Affine:
    """`w = scale * code + bias` per group; the bias is in weight units."""

    bits: int
    group_size: int
    """Consecutive input features that share a scale and a bias."""
    scale: tuple[str, ...]
    """Dtypes that scales and biases may have; the first is what `pack` writes."""
    pack: str
    """Layout of the codes, a key of `qmanifest.layouts.LAYOUTS`."""
    kind: Literal["affine"] = "affine"

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        words, groups = _sizes(shape, self.pack, self.bits, self.group_size)
        return (
            ("codes", (LAYOUTS[self.pack].word_dtype,), words),
            ("scales", self.scale, groups),
            ("biases", self.scale, groups),
        )

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        return NO_ROLES

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the largest weight whose codes are stored in shape `codes`."""
        return logical_shape(codes, self.pack, self.bits)

    def __str__(self) -> str:
        """Print the canonical line."""
        return (
            f"affine(bits={self.bits}, group={self.group_size}, "
            f"scale={'|'.join(self.scale)}, pack={self.pack})"
        )


@dataclass(frozen=True, slots=True)
class ZeroPoint:
    """`w = scale * (code - zero)`: the zero is in code units, per group."""

    bits: int
    group_size: int
    scale: tuple[str, ...]
    zero: tuple[str, ...]
    """Dtypes of the zeros: floats, or `U8` for one code per byte."""
    pack: str
    """Layout of the codes, a key of `qmanifest.layouts.LAYOUTS`."""
    kind: Literal["zero-point"] = "zero-point"

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        words, groups = _sizes(shape, self.pack, self.bits, self.group_size)
        return (
            ("codes", (LAYOUTS[self.pack].word_dtype,), words),
            ("scales", self.scale, groups),
            ("zeros", self.zero, groups),
        )

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        return NO_ROLES

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the largest weight whose codes are stored in shape `codes`."""
        return logical_shape(codes, self.pack, self.bits)

    def __str__(self) -> str:
        """Print the canonical line."""
        return (
            f"zero-point(bits={self.bits}, group={self.group_size}, "
            f"scale={'|'.join(self.scale)}, zero={'|'.join(self.zero)}, "
            f"pack={self.pack})"
        )


@dataclass(frozen=True, slots=True)
class Microscaling:
    """`w = element(code) * scale`: small floats, one byte of scale per group."""

    element: str
    """Number format of a code, a key of `qmanifest.elements.ELEMENTS`."""
    group_size: int
    scale: str
    """Number format of a group's scale: `e8m0` or `e4m3`."""
    pack: str
    """Layout of the codes, a key of `qmanifest.layouts.LAYOUTS`."""
    global_scale: Literal["none", "amax"]
    """`amax`: scales are further multiplied by `global_scale / (6 * 448)`."""
    kind: Literal["microscaling"] = "microscaling"

    @property
    def bits(self) -> int:
        """Width of a code."""
        return ELEMENTS[self.element].bits

    def parts(self, shape: Shape | None) -> Parts:
        """Every stored tensor of a weight of logical `shape`."""
        words, groups = _sizes(shape, self.pack, self.bits, self.group_size)
        parts: Parts = (
            ("codes", (LAYOUTS[self.pack].word_dtype,), words),
            ("scales", ("U8",), groups),
        )
        if self.global_scale == "none":
            return parts
        experts = (shape[:-2] or (1,)) if shape else None
        return (*parts, ("global_scale", ("F32",), experts))

    @property
    def optional(self) -> tuple[str, ...]:
        """Roles of the parts that readers do without."""
        return NO_ROLES

    def logical(self, codes: Shape) -> Shape | None:
        """Shape of the largest weight whose codes are stored in shape `codes`."""
        return logical_shape(codes, self.pack, self.bits)

    def __str__(self) -> str:
        """Print the canonical line."""
        end = "" if self.global_scale == "none" else f", global={self.global_scale}"
        return (
            f"microscaling(element={self.element}, group={self.group_size}, "
            f"scale={self.scale}, pack={self.pack}{end})"
        )
