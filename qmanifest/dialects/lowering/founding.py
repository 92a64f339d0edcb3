"""What the two founding dialects share: lines that keep and lines that quantize.

Both have a list of what stays 16-bit, lists of what is quantized, and the intent to
name every matrix. What is left to each is its keys, and what a line promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from qmanifest.dialects.base import few
from qmanifest.dialects.lowering.claims import expand, is_exact
from qmanifest.dialects.lowering.mlx_layout import as_stored
from qmanifest.dialects.lowering.plain_names import PlainNames
from qmanifest.evidence import Evidence
from qmanifest.findings import Defect, DefectKind, Location, Problem
from qmanifest.manifest import Component, Kept, Weight
from qmanifest.patterns import match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from qmanifest.dialects.base import ComponentNames, Place
    from qmanifest.dialects.lowering.claims import Claim
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex


class Keeping(msgspec.Struct, frozen=True):
    """The lines that keep tensors, and the dtypes that these may have."""

    claims: Sequence[Claim]
    dtypes: tuple[str, ...]


class Quantizing(msgspec.Struct, frozen=True):
    """A line that quantizes, and what it promises of every tensor that it names."""

    claim: Claim
    scheme: Scheme
    shape: Shape | None = None


def lower_lines(
    named: ComponentNames,
    keeping: Keeping,
    quantizing: Sequence[Quantizing] | PlainNames,
    place: Place,
    index: TensorIndex | None,
) -> tuple[Component, tuple[Defect, ...]]:
    """Lower the lines of one component against its stored tensors.

    A plain name decides over a pattern, and of two patterns the first one. A name that
    is kept too stays quantized in the manifest, and is reported.

    Args:
        named: the component, as its dialect names it.
        keeping: lines of the keep list.
        quantizing: lines that quantize, or all of them at once where they are names.
        place: where the document lies.
        index: the stored tensors; without them patterns stay unexpanded.

    """
    claims = list(keeping.claims)
    if isinstance(quantizing, PlainNames):
        kept_by, defects = expand(claims, place, _names(claims, index))
        plain, made = quantizing.lower(index)
        entries = (*kept_by, *plain)
        weights = dict(zip(quantizing.names, made, strict=True))
    else:
        claims += [line.claim for line in quantizing]
        entries, defects = expand(claims, place, _names(claims, index))
        kept_by = entries[: len(keeping.claims)]
        weights = _weights(entries[len(kept_by) :], quantizing, index)
    kept: dict[str, Kept] = {}
    for entry in kept_by:
        for name in entry.matches:
            if name not in weights:
                kept.setdefault(name, Kept(name, entry.pointer, keeping.dtypes))
    component = Component(
        named.name,
        tuple(weights.values()),
        tuple(kept.values()),
        entries,
        exhaustive=True,
        pointer=named.pointer,
    )
    return component, (*defects, *few(_contradictions(kept_by, weights, place)))


def _names(claims: Sequence[Claim], index: TensorIndex | None) -> Sequence[str] | None:
    """List the stored names that claims are matched with; none without claims."""
    if index is None:
        return None
    return index.derived(Evidence).logical if claims else ()


def _weights(
    entries: Sequence[Entry], lines: Sequence[Quantizing], index: TensorIndex | None
) -> dict[str, Weight]:
    """Make the weights: plain names first, then what patterns add in their order."""
    weights: dict[str, Weight] = {}
    pairs = zip(entries, lines, strict=True)
    for entry, line in sorted(pairs, key=lambda pair: not is_exact(pair[0])):
        for name in (entry.pattern.text,) if is_exact(entry) else entry.matches:
            if name not in weights:
                scheme = as_stored(line.scheme, name, index)
                weights[name] = Weight(name, scheme, entry.pointer, line.shape)
    return weights


def _contradictions(
    kept_by: Sequence[Entry], weights: Mapping[str, Weight], place: Place
) -> Iterator[Defect]:
    """Report every name that is both kept and quantized, stored or not."""
    matches = match([entry.pattern for entry in kept_by], weights)
    if len(matches.dead) == len(kept_by):
        return
    for name, weight in weights.items():
        claims = matches.claims(name)
        if not claims:
            continue
        entry = kept_by[claims[0]]
        problem = Problem(
            f"{name!r} is kept by {entry.pointer} ({entry.pattern.text!r}) and "
            f"quantized by {weight.pointer} ({weight.scheme})",
            (
                Location(place.file, entry.pointer, name),
                Location(place.file, weight.pointer, name),
            ),
            hint="remove one of the two entries",
        )
        yield Defect(DefectKind.CONTRADICTION, problem)
