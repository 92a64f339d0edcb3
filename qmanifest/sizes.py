"""Exact byte accounting: of what a manifest promises, and of what is stored.

Both make the same rows, one per stored tensor, so they can be subtracted. What cannot
be counted is left out and said in a plain sentence, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from qmanifest.evidence import Evidence
from qmanifest.families import WORDS
from qmanifest.manifest import Component
from qmanifest.size_promises import (
    Known,
    dense_row,
    promised_dense,
    promised_weights,
    sentence,
)
from qmanifest.size_rows import (
    Grouping,
    GroupSize,
    PartSize,
    Sizes,
    layer_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.manifest import Manifest
    from qmanifest.tensors import Shape, TensorIndex, TensorInfo

__all__ = [
    "GroupSize",
    "Grouping",
    "PartSize",
    "Shapes",
    "Sizes",
    "layer_of",
    "sizes_of",
    "stored_sizes",
]

Shapes: TypeAlias = Mapping[str, Known]
"""The same by component, whose name is empty where the config has a single model."""


def sizes_of(
    manifest: Manifest,
    shapes: Shapes | None = None,
    *,
    overhead: int = 0,
    stored: Mapping[str, Mapping[str, TensorInfo]] | None = None,
) -> Sizes:
    """Count the bytes of a checkpoint that keeps what `manifest` promises.

    Args:
        manifest: the promise; a dtype it leaves open is counted as the first one.
        shapes: logical shapes of the model, for weights that declare none, for kept
            tensors, and for tensors that the config does not name, which are copied as
            they are.
        overhead: bytes of the file headers, where they are known.
        stored: the stored tensors of each component. Where the promise leaves a choice
            of dtype, of presence or of length, theirs counts.

    """
    sizes = Sizes((), overhead)
    for component in manifest.components:
        known = None if shapes is None else shapes.get(component.name)
        there = (stored or {}).get(component.name)
        sizes += promised_weights(component, known or {}, there)
        sizes += promised_dense(component, known)
    return sizes


def stored_sizes(
    index: TensorIndex,
    component: Component | None = None,
    logical: Mapping[str, Shape] | None = None,
) -> Sizes:
    """Count the bytes of the tensors that are stored, whatever was promised.

    Args:
        index: the stored tensors of one model. Each file's header is taken to end
            where its first tensor begins; a file without tensors is not seen.
        component: the promise, for the code widths that no stored tensor tells.
        logical: logical shapes by weight, as `qmanifest.logical` finds them; without
            it a weight is what its codes show, padding included.

    """
    component = component or Component("")
    owners = _owners(index.derived(Evidence), component, logical or {})
    rows = tuple(
        _stored(component.name, tensor, owners.get(tensor.name))
        for tensor in index.values()
    )
    codes = [row for row in rows if row.role == "codes"]
    empty = [row.tensor for row in codes if not row.parameters and row.nbytes]
    why = "Parameters not counted, because nothing says the code width"
    return Sizes(
        rows,
        _header_bytes((*index.values(), *index.repeats)),
        sum(tensor.nbytes for tensor in index.repeats),
        unknown=sentence(component, why, "packed tensor", empty),
    )


@dataclass(frozen=True, slots=True)
class _Owner:
    """What a stored tensor is part of."""

    weight: str
    role: str
    bits: int
    shape: Shape | None
    """The weight's logical shape, where it is declared or shows."""


def _owners(
    evidence: Evidence, component: Component, logical: Mapping[str, Shape]
) -> dict[str, _Owner]:
    """Find the weight of every tensor that is stored as part of a packed one."""
    declared = {weight.name: weight for weight in component.weights}
    owners: dict[str, _Owner] = {}
    for name, found in evidence.stored.items():
        weight = declared.get(name)
        names = weight.names if weight else found.family.names
        bits = weight.scheme.bits if weight else 0
        for role, _ in names.suffixes:
            owners[names.name(name, role)] = _Owner(name, role, bits, None)
        shape = None
        if weight is not None:
            shape = logical.get(name) or weight.shape or weight.logical(found.codes)
        owners[found.codes.name] = _Owner(name, "codes", bits, shape)
    return owners


def _stored(component: str, tensor: TensorInfo, owner: _Owner | None) -> PartSize:
    """Size a stored tensor by its header."""
    if owner is None and tensor.dtype in WORDS and len(tensor.shape) > 1:
        owner = _Owner(tensor.name, "codes", 0, None)
    if owner is None:
        return dense_row(component, tensor.name, tensor.dtype, tensor.shape)
    return PartSize(
        component=component,
        weight=owner.weight,
        tensor=tensor.name,
        role=owner.role,
        dtype=tensor.dtype,
        shape=tensor.shape,
        nbytes=tensor.nbytes,
        bits=owner.bits,
        parameters=_codes(tensor, owner) if owner.role == "codes" else 0,
    )


def _codes(tensor: TensorInfo, owner: _Owner) -> int:
    """Count the codes in packed words, by the logical shape or else by width."""
    if owner.shape is not None:
        return prod(owner.shape)
    return tensor.nbytes * 8 // owner.bits if owner.bits else 0


def _header_bytes(tensors: Sequence[TensorInfo]) -> int:
    """Sum what lies before the first tensor of each file."""
    begins: dict[str, int] = {}
    for tensor in tensors:
        begins[tensor.file] = min(tensor.begin, begins.get(tensor.file, tensor.begin))
    return sum(begins.values())
