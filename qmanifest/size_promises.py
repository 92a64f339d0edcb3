"""The bytes that a manifest promises, weight by weight.

What it leaves open is counted in one way, and what cannot be counted is left out; both
are said in a plain sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.dtypes import DTYPES, nbytes
from qmanifest.schemes import Opaque
from qmanifest.size_rows import DENSE, PartSize, Sizes
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.manifest import Component, Weight
    from qmanifest.tensors import TensorInfo, TensorSpec

Known: TypeAlias = Mapping[str, tuple[str, Shape]]
"""Dtype and logical shape by name, of one model."""
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


def promised_weights(
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
    each = (sentence(component, why, noun, some) for why, some in names.items())
    return tuple(chain.from_iterable(each))


def promised_dense(component: Component, known: Known | None) -> Sizes:
    """Count the kept tensors, and those that the config does not name."""
    kept = {each.name: each.dtypes for each in component.kept}
    quantized = {weight.name for weight in component.weights}
    rows = []
    for name, (found, shape) in (known or {}).items():
        allowed = kept.get(name, (found,))
        dtype = found if found in allowed else allowed[0]
        if name not in quantized:
            rows.append(dense_row(component.name, name, dtype, shape))
    lost = [name for name in kept if name not in (known or {}) if name not in quantized]
    unknown = sentence(component, _SHAPELESS, "kept tensor", lost)
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


def _differ(dtypes: Sequence[str]) -> bool:
    """Tell whether dtypes have different widths."""
    return len({DTYPES[dtype].bits for dtype in dtypes}) > 1


def dense_row(component: str, name: str, dtype: str, shape: Shape) -> PartSize:
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


def sentence(
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
