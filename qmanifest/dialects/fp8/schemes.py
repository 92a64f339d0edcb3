"""How fine-grained FP8 is stored: the scheme of a weight, and how its parts are called.

The config says the size of blocks; whether there are blocks, and what a scale is, the
stored tensors show.

Source: https://github.com/huggingface/transformers, `integrations/finegrained_fp8.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from qmanifest.families import BLOCK_FP8, EXPERT_FP8, F8, MISTRAL_FP8, OWN_FP8, SCALED
from qmanifest.manifest import Weight
from qmanifest.schemes import Extra
from qmanifest.schemes.floats import E8M0, WIDE, fp8, mxfp4
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.evidence import Evidence
    from qmanifest.families import PartNames
    from qmanifest.manifest import Component
    from qmanifest.schemes import Scheme
    from qmanifest.schemes.floats import Extras
    from qmanifest.tensors import Shape, TensorIndex, TensorInfo

SPELLINGS: Final = (BLOCK_FP8, OWN_FP8, MISTRAL_FP8, SCALED)
"""How readers know the parts of a linear layer."""
FAMILIES: Final = (*SPELLINGS, EXPERT_FP8)
INPUTS: Final[tuple[str, ...]] = ("input_scale", "activation_scale")
"""Roles of the scale of a layer's input; families have either or both."""


def spelling(evidence: Evidence) -> PartNames:
    """Name the parts as most of a model's weights have them, for one that lost its own.

    Without any, as transformers does.
    """
    for found in evidence.stored.values():
        names, name = found.family.names, found.codes.name
        if found.family in SPELLINGS and names.name(name, "scales") in evidence.index:
            return names
    return BLOCK_FP8.names


@dataclass(frozen=True, slots=True)
class Stored:
    """What a config says of all weights, to be held against each as it is stored."""

    index: TensorIndex
    block: tuple[int, int] | None
    """Outputs and inputs of a block; None for one scale per weight."""
    certain: bool
    """Whether the config says which, so that other scales are wrong."""
    powers: bool
    """Whether scales are powers of two, which may lie in plain bytes."""
    static: bool
    """Whether every layer has a scale of its input."""
    fp4: bool
    """Whether experts may be MXFP4, in signed bytes."""

    def scheme(self, names: PartNames, codes: TensorInfo) -> Scheme:
        """Name the scheme of a weight, which is called as its codes are."""
        extras = self._extras(names, codes)
        scales = self.index.get(names.name(codes.name, "scales"))
        dtype = "F32" if scales is None else scales.dtype
        powers = dtype == "F8_E8M0" or (self.powers and dtype not in WIDE)
        scale, form = (E8M0, "e8m0") if powers else (WIDE, "float")
        if self.fp4 and codes.dtype not in F8:
            return mxfp4("i8-lsb", scale, form, extras)
        found = None if scales is None else scales.shape
        return fp8(self._spread(found, codes.shape), scale, form, extras)

    def _spread(self, scales: Shape | None, codes: Shape) -> Spread:
        """Tell blocks from one scale for all, which may be stored in three shapes."""
        stack = len(codes) > 2 and scales == (*codes[:-2], 1, 1)  # noqa: PLR2004 - a matrix
        whole = scales in {(), (1,)} or stack
        if self.block is not None and (self.certain or not whole):
            rows, columns = self.block
            if _has_halves(scales, codes, rows):
                rows = codes[-2] // 2
            return Spread(rows, columns)
        return Spread(0, 0, "table" if stack else "one" if scales == (1,) else "scalar")

    def _extras(self, names: PartNames, codes: TensorInfo) -> Extras:
        """Promise the scale of a layer's input, where it is stored or has to be."""
        parts = {role: names.name(codes.name, role) for role, _ in names.suffixes}
        roles = [role for role in INPUTS if parts.get(role) in self.index]
        if not roles and self.static:
            roles = [role for role in reversed(INPUTS) if role in parts][:1]
        shapes = {role: self._shape(parts[role], codes.shape[:-2]) for role in roles}
        optional = not self.static
        return tuple(Extra(r, WIDE, shape, optional) for r, shape in shapes.items())

    def _shape(self, name: str, experts: Shape) -> Shape:
        """Find the shape of an input's scale: one for each expert, or one in all."""
        part = self.index.get(name)
        return (1,) if part is not None and part.shape == (1,) else experts


def _has_halves(scales: Shape | None, codes: Shape, rows: int) -> bool:
    """Whether a stack of gates and what they gate fits a block, and has two scales.

    Transformers gives each half one, so that halves can be quantized apart.
    """
    small = len(codes) > 2 and codes[-2] <= rows and codes[-2] % 2 == 0  # noqa: PLR2004 - a matrix
    return small and scales is not None and scales[-2:-1] == (2,)


def with_bare_stacks(component: Component, stored: Stored, pointer: str) -> Component:
    """Add the stacks of FP8 experts that have no scales, which no name shows."""
    taken = {weight.name for weight in component.weights}
    taken |= {kept.name for kept in component.kept}
    names = EXPERT_FP8.names
    bare = (
        Weight(name, stored.scheme(names, tensor), pointer, names=names)
        for name, tensor in stored.index.items()
        if tensor.dtype in F8 and len(tensor.shape) > 2  # noqa: PLR2004 - a matrix
        if name not in taken and "scale" not in name
    )
    return replace(component, weights=(*component.weights, *bare))
