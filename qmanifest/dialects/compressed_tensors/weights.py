"""Weights of compressed-tensors: each stored one with the scheme of its group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from qmanifest.dialects.compressed_tensors.checks import DENSE_STREAM, version_of
from qmanifest.dialects.compressed_tensors.groups import LINEAR
from qmanifest.dialects.compressed_tensors.schemes import (
    PACKED_FORMATS,
    SPARSE,
    Stored,
    fits_whole,
    input_parts,
    scheme_of,
    sparse,
)
from qmanifest.families import PACKED, PRUNED, SCALED
from qmanifest.manifest import Weight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
    from qmanifest.dialects.compressed_tensors.groups import Group, Target
    from qmanifest.evidence import Found
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Extra, Scheme
    from qmanifest.tensors import Shape, TensorIndex

EMBEDDING: Final = "Embedding"
UNEVEN: Final = (3, 5, 6, 7)
"""Widths that the two packings store in different ways."""


@dataclass(frozen=True)
class Maker:
    """Makes the weights of one model."""

    version: str | None
    sparse: str | None
    place: Place
    index: TensorIndex | None
    by_pointer: Mapping[str, Target]
    """The targets that are names, by where they are."""
    by_class: Mapping[str, Target]
    """The targets that are classes, in the order of their names."""
    made: dict[tuple[int, Stored], Scheme | None] = field(default_factory=dict)
    """Schemes by group, of which there are few, and what is stored."""
    pointers: dict[int, str] = field(default_factory=dict)
    """Pointers to targets, by their identity."""

    def make(self, name: str, found: Found, said: Entry | None) -> Weight | None:
        """Make a weight that is stored; None where the config does not say so."""
        if found.family is PRUNED and self.sparse in SPARSE:
            pointer = self.place.pointer("sparsity_config")
            return Weight(name, sparse(self.sparse), pointer, names=PRUNED.names)
        target = self._target(name) if said is None else self.by_pointer[said.pointer]
        if target is None or target.group.weights is None:
            return None
        group = target.group
        family = PACKED if group.format in PACKED_FORMATS else SCALED
        if group.format in SPARSE:
            family = PRUNED
        if found.family is not family:
            return None
        scheme = self._scheme(group, name, found)
        if scheme is None:
            return None
        return Weight(name, scheme, self._pointer(target), names=family.names)

    def _pointer(self, target: Target) -> str:
        """Point at a target, of which there are few, for each of many weights."""
        key = id(target)
        if key not in self.pointers:
            self.pointers[key] = self.place.pointer(*target.group.place(target.number))
        return self.pointers[key]

    def _target(self, name: str) -> Target | None:
        """Choose among the targets that are classes, of which files tell nothing.

        An embedding is one where a target says so; everything else is linear, or of
        the first class that is no embedding.
        """
        by_class = self.by_class
        if (
            EMBEDDING in by_class
            and "embed" in name.removesuffix(".weight").rpartition(".")[2]
        ):
            return by_class[EMBEDDING]
        if LINEAR in by_class:
            return by_class[LINEAR]
        others = (each for text, each in by_class.items() if text != EMBEDDING)
        return next(others, None)

    def _scheme(self, group: Group, name: str, found: Found) -> Scheme | None:
        """Name the scheme of a weight, by its group and what is stored of it."""
        args = group.weights
        if args is None:
            return None
        one = args.spread == "tensor"
        packed = group.format == "pack-quantized" and args.num_bits in UNEVEN
        scales = self._shape(found, name, "scales") if one or packed else None
        whole = packed and self._is_whole(found.codes.shape, scales, args)
        inputs = self._shape(found, name, "input_scale") if group.runs else None
        stored = Stored(whole, scales == (), len(found.codes.shape), inputs == ())
        key = id(group), stored
        if key not in self.made:
            self.made[key] = scheme_of(
                args, group.format, stored, _extras(group, stored)
            )
        return self.made[key]

    def _is_whole(
        self, codes: Shape, scales: Shape | None, args: QuantizationArgs
    ) -> bool:
        """Tell whether words hold whole codes: by shape, or else by version."""
        whole = fits_whole(codes, scales or (), args)
        version = version_of(self.version)
        if whole is None:
            return version is not None and version < DENSE_STREAM
        return whole

    def _shape(self, found: Found, name: str, role: str) -> Shape | None:
        """Find the stored shape of a part."""
        part = self.index and self.index.get(found.family.names.name(name, role))
        return part.shape if part else None


def _extras(group: Group, stored: Stored) -> tuple[Extra, ...]:
    """List what is stored of inputs and outputs beside the weights of a group."""
    scheme = group.scheme
    return (
        *input_parts(scheme.input_activations, "input", scalar=stored.scalar_input),
        *input_parts(scheme.output_activations, "output", scalar=stored.scalar_input),
    )
