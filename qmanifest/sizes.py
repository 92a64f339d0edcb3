"""Exact byte accounting: of what a manifest promises, and of what is stored.

Both make the same rows, one per stored tensor, so they can be subtracted. What cannot
be counted is left out and said in a plain sentence, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.dtypes import DTYPES, nbytes
from qmanifest.evidence import Evidence
from qmanifest.families import WORDS
from qmanifest.manifest import Component
from qmanifest.schemes import Opaque
from qmanifest.size_rows import (
    DENSE,
    Grouping,
    GroupSize,
    PartSize,
    Sizes,
    layer_of,
)
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.manifest import Manifest, Weight
    from qmanifest.tensors import TensorIndex, TensorInfo, TensorSpec

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

Known: TypeAlias = Mapping[str, tuple[str, Shape]]
"""Dtype and logical shape by name, of one model."""
Shapes: TypeAlias = Mapping[str, Known]
"""The same by component, whose name is empty where the config has a single model."""

_FIRST: Final = 3
"""Names that a sentence gives as examples."""
_SHAPELESS: Final = "Not counted, because no shape is known"
_RAGGED: Final = "Not counted, because a row is not a whole number of words"
_UNTOLD: Final = "Not counted, because nothing tells in what shape it is stored"
_LENGTHLESS: Final = "Not counted is a part of no fixed length"
_OPEN_WIDTH: Final = "Counted in the first of several dtypes of different widths"
_OPTIONAL: Final = "Counted with parts that readers do without"
_UNKNOWN: Final = (_SHAPELESS, _RAGGED, _UNTOLD, _LENGTHLESS)
_ASSUMED: Final = (_OPEN_WIDTH, _OPTIONAL)


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
        sizes += _promised_weights(component, known or {}, there)
        sizes += _promised_dense(component, known)
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
    silent = [row.tensor for row in rows if row.role == "codes" and not row.bits]
    why = "Parameters not counted, because nothing says the code width"
    return Sizes(
        rows,
        _header_bytes((*index.values(), *index.repeats)),
        sum(tensor.nbytes for tensor in index.repeats),
        unknown=_sentence(component, why, "packed tensor", silent),
    )


def _promised_weights(
    component: Component, known: Known, there: Mapping[str, TensorInfo] | None
) -> Sizes:
    """Count every quantized weight that has a shape, declared or known."""
    rows: list[PartSize] = []
    unknown: dict[str, list[str]] = {why: [] for why in _UNKNOWN}
    assumed: dict[str, list[str]] = {why: [] for why in _ASSUMED}
    for weight in component.weights:
        shape = known.get(weight.name, ("", ()))[1]
        shape = weight.shape or shape
        if not shape:
            unknown[_SHAPELESS].append(weight.name)
            continue
        specs = _chosen(weight, shape, there)
        if specs[0].shape is None:
            opaque = isinstance(weight.scheme, Opaque)
            unknown[_UNTOLD if opaque else _RAGGED].append(weight.name)
            continue
        rows += _parts(component, weight, shape, specs)
        if any(spec.shape is None for spec in specs):
            unknown[_LENGTHLESS].append(weight.name)
        if any(_differ(spec.dtypes) for spec in specs):
            assumed[_OPEN_WIDTH].append(weight.name)
        if there is None and any(spec.optional for spec in specs):
            assumed[_OPTIONAL].append(weight.name)
    return Sizes(
        tuple(rows),
        unknown=_sentences(component, unknown),
        assumed=_sentences(component, assumed),
    )


def _sentences(
    component: Component, names: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Write a sentence for each reason that some quantized weights have."""
    noun = "quantized weight"
    each = (_sentence(component, why, noun, some) for why, some in names.items())
    return tuple(chain.from_iterable(each))


def _promised_dense(component: Component, known: Known | None) -> Sizes:
    """Count the kept tensors, and those that the config does not name."""
    kept = {each.name: each.dtypes for each in component.kept}
    quantized = {weight.name for weight in component.weights}
    rows = []
    for name, (found, shape) in (known or {}).items():
        allowed = kept.get(name, (found,))
        dtype = found if found in allowed else allowed[0]
        if name not in quantized:
            rows.append(_dense(component.name, name, dtype, shape))
    lost = [name for name in kept if name not in (known or {}) if name not in quantized]
    unknown = _sentence(component, _SHAPELESS, "kept tensor", lost)
    if known is None:
        place = f"{component.name}: " if component.name else ""
        unknown += (f"{place}{_SHAPELESS}: tensors that the config does not name",)
    return Sizes(tuple(rows), unknown=unknown)


def _chosen(
    weight: Weight, shape: Shape, there: Mapping[str, TensorInfo] | None
) -> list[TensorSpec]:
    """List the parts that are counted, each as it is stored where that keeps to it."""
    specs = []
    for spec in weight.parts(shape):
        tensor = (there or {}).get(spec.name)
        if tensor is None:
            if not spec.optional or (spec.shape is not None and there is None):
                specs.append(spec)
            continue
        dtypes = (tensor.dtype,) if tensor.dtype in spec.dtypes else spec.dtypes
        size = tensor.shape if spec.shape is None else spec.shape
        specs.append(replace(spec, dtypes=dtypes, shape=size))
    return specs


def _parts(
    component: Component, weight: Weight, shape: Shape, specs: Sequence[TensorSpec]
) -> Iterator[PartSize]:
    """Size the parts of a weight of logical `shape` that have a shape themselves."""
    for spec in specs:
        if spec.shape is not None:
            yield PartSize(
                component=component.name,
                weight=weight.name,
                tensor=spec.name,
                role=spec.role,
                dtype=spec.dtypes[0],
                shape=spec.shape,
                nbytes=nbytes(spec.dtypes[0], spec.shape),
                bits=weight.scheme.bits,
                parameters=prod(shape) if spec.role == "codes" else 0,
            )


def _dense(component: str, name: str, dtype: str, shape: Shape) -> PartSize:
    """Size a tensor that is no part of a quantized weight."""
    return PartSize(
        component=component,
        weight=name,
        tensor=name,
        role=DENSE,
        dtype=dtype,
        shape=shape,
        nbytes=nbytes(dtype, shape),
        bits=DTYPES[dtype].bits,
        parameters=prod(shape),
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
        return _dense(component, tensor.name, tensor.dtype, tensor.shape)
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


def _differ(dtypes: Sequence[str]) -> bool:
    """Tell whether dtypes have different widths."""
    return len({DTYPES[dtype].bits for dtype in dtypes}) > 1


def _sentence(
    component: Component, why: str, noun: str, names: Sequence[str]
) -> tuple[str, ...]:
    """Say `why: N nouns ('first', ...)`, or nothing without names."""
    if not names:
        return ()
    place = f"{component.name}: " if component.name else ""
    shown = ", ".join(repr(name) for name in names[:_FIRST])
    more = ", ..." if len(names) > _FIRST else ""
    plural = "" if len(names) == 1 else "s"
    return (f"{place}{why}: {len(names):,} {noun}{plural} ({shown}{more})",)
