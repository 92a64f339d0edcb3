"""Lowering where the tensors decide what is quantized, and the config says how.

The formats of other libraries than MLX name what stays 16-bit, at most. Which modules
are quantized shows by their tensors; the dialect gives each its scheme.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from qmanifest.dialects.base import few
from qmanifest.dialects.lowering.claims import expand
from qmanifest.dialects.lowering.stacks import with_stacks
from qmanifest.dtypes import FLOAT
from qmanifest.evidence import Evidence, Found
from qmanifest.manifest import Component, Entry, Kept, Weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.lowering.claims import Claim
    from qmanifest.findings import Defect
    from qmanifest.tensors import TensorIndex

MakeWeight: TypeAlias = Callable[[str, Found, Entry | None], Weight | None]
"""Makes the weight of a name that is stored quantized; None where it is not declared.

It gets the name, what is stored, and the first line that says how it is quantized.
"""


@dataclass(frozen=True, slots=True)
class Saying:
    """What a document says of one model, apart from how its weights are stored."""

    claims: Sequence[Claim]
    """Its lines that name modules."""
    every_linear: bool
    """Whether it quantizes every linear layer that no line keeps."""


def lower_stored(
    saying: Saying, place: Place, index: TensorIndex | None, make: MakeWeight
) -> tuple[Component, tuple[Defect, ...]]:
    """Lower a document of one model against its stored tensors.

    Without tensors nothing is named but what the lines name as plain names.
    """
    evidence = None if index is None else index.derived(Evidence)
    stacks = None if evidence is None else with_stacks(evidence.logical)
    names = None if stacks is None else stacks.names
    entries, defects = expand(saying.claims, place, names)
    if stacks is not None:
        entries = tuple(map(stacks.expanded, entries))
    weights: dict[str, Weight] = {}
    if evidence is not None:
        said = _said(entries)
        for name, found in evidence.stored.items():
            weight = make(name, found, said.get(name))
            if weight is not None:
                weights[name] = weight
    component = Component(
        "",
        tuple(weights.values()),
        _kept(entries),
        entries,
        pointer=place.pointer(),
        every_linear=saying.every_linear,
    )
    return component, tuple(few(defects))


def _said(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Find the first line that says how a name is quantized."""
    said: dict[str, Entry] = {}
    for entry in entries:
        if entry.purpose == "quantize":
            for name in entry.matches:
                said.setdefault(name, entry)
    return said


def _kept(entries: Sequence[Entry]) -> tuple[Kept, ...]:
    """List what the lines keep, each by the first line that does."""
    kept: dict[str, Kept] = {}
    for entry in entries:
        if entry.purpose == "keep":
            for name in entry.matches:
                kept.setdefault(name, Kept(name, entry.pointer, FLOAT))
    return tuple(kept.values())
