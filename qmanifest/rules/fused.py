"""QM306: that modules which engines fuse are stored alike."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from qmanifest.families import DENSE
from qmanifest.findings import Location, Problem, Severity
from qmanifest.patterns.fused import fused_name
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component
    from qmanifest.reading.stores import Store

SUFFIX: Final = ".weight"


@rule("QM306", "fused-siblings", Severity.WARNING, needs=Depth.HEADERS)
def fused_siblings(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Projections that engines fuse into one matrix are stored in different ways.

    Query, key and value; gate and up: one is quantized and its sibling is not, or both
    are, with other bits, group size or format.

    ## Why it matters
    vLLM and its kin load them as one matrix, which has one scheme: they refuse the
    checkpoint, or read one part by the other's numbers.

    ## Fix
    Store all of them alike: keep all 16-bit, or quantize all in the same way.
    """
    for component, store in checkpoint.found():
        if component.every_linear:
            yield from _uneven(checkpoint, component, store)


def _uneven(
    checkpoint: Checkpoint, component: Component, store: Store
) -> Iterator[Problem]:
    """Report the groups of one model whose members differ."""
    schemes = {weight.name: str(weight.scheme) for weight in component.weights}
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for name in store.evidence.logical:
        fused = fused_name(name.removesuffix(SUFFIX))
        if fused is None or not name.endswith(SUFFIX):
            continue
        scheme = schemes.get(name)
        if scheme is None:
            tensor = store.index.get(name)
            if tensor is None or tensor.dtype not in DENSE:
                continue
            scheme = tensor.dtype
        groups[fused][name] = scheme
    for stored in groups.values():
        quantized = not schemes.keys().isdisjoint(stored)
        if quantized and len(set(stored.values())) > 1:
            yield _problem(checkpoint, store, stored)


def _problem(checkpoint: Checkpoint, store: Store, stored: dict[str, str]) -> Problem:
    said = "; ".join(f"{name!r} is {scheme}" for name, scheme in stored.items())
    at = []
    for name in stored:
        found = store.evidence.stored.get(name)
        tensor = store.index[name] if found is None else found.codes
        at.append(Location(tensor.file, tensor=name))
    return Problem(
        f"{said}; engines that fuse them need one scheme for all",
        (*at, Location(checkpoint.config_name)),
        expected="one scheme",
        actual=" and ".join(sorted(set(stored.values()))),
        hint="keep all of them 16-bit, or quantize all in the same way",
    )


RULES = (fused_siblings,)
