"""QM4, descriptions: that headers describe the tensors which are stored in parts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity
from qmanifest.reading.descriptions import CLASSES, describes, descriptions
from qmanifest.reading.wording import count, listing
from qmanifest.rules.base import Depth, of_component, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component
    from qmanifest.reading.descriptions import Description
    from qmanifest.reading.stores import Store


@rule("QM408", "description", Severity.ERROR, needs=Depth.HEADERS, absence=True)
def description(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Headers describe other tensors than are stored, or leave some out.

    Formats that store a weight as the fields of an object, as torchao does, write
    into the metadata of the headers which objects there are, and their fields. Also
    found is an object of a class whose codes have another dtype than is stored, and,
    as a warning, one of a class that is not known.

    ## Why it matters
    Loaders put objects together from the descriptions alone: without one the fields
    of a weight are left over, and with too few fields a weight is never built.

    ## Fix
    Save the checkpoint again with the library that quantized it. Tools that copy
    safetensors files often drop the metadata.
    """
    for component, store in checkpoint.found():
        said = _said(store)
        if not said and store.evidence.is_plain:
            continue  # nothing is described, and nothing ought to be
        yield from _absent(component, store, said)
        yield from _other_classes(store, said)
        yield from _left_out(component, store, said)


def _said(store: Store) -> dict[str, Description]:
    """Collect what all headers say; one may list what another one describes."""
    found: dict[str, Description] = {}
    for header in store.headers:
        for each in descriptions(header):
            if each.name not in found or found[each.name].kind is None:
                found[each.name] = each
    return found


def _absent(
    component: Component, store: Store, said: Mapping[str, Description]
) -> Iterator[Problem]:
    """Report descriptions without the tensors that they are of."""
    known = {  # QM206 has these, and QM207 codes that are lost
        part.name
        for weight in component.weights
        for part in weight.parts()
        if not part.optional
    }
    for each in said.values():
        if each.kind is None:
            yield Problem(
                f"{each.file} lists {each.name!r}, and no header says what it is",
                (Location(each.file, tensor=each.name),),
                hint="save the checkpoint again with the library that quantized it",
            )
        absent = [part for part in each.parts if part not in store.index]
        if each.name not in store.evidence.bereft and not known.issuperset(absent):
            yield Problem(
                f"{each.file} describes {each.name!r} as {each.kind} of "
                f"{count(len(each.parts), 'tensor')}, and {listing(absent)} "
                f"{'is' if len(absent) == 1 else 'are'} in no safetensors file",
                tuple(Location(each.file, tensor=part) for part in absent),
                expected=list(each.parts),
                hint="convert again; loaders leave such a weight out",
            )


def _other_classes(store: Store, said: Mapping[str, Description]) -> Iterator[Problem]:
    """Report classes whose codes are stored in another dtype, or that are unknown."""
    for name, found in store.evidence.stored.items():
        each, codes = said.get(name), found.codes
        if (
            each is None
            or each.kind is None
            or codes.dtype in CLASSES.get(each.kind, ())
        ):
            continue
        known = each.kind in CLASSES
        have = f"has {' or '.join(CLASSES[each.kind])}" if known else "is not known"
        yield Problem(
            f"{each.file} describes {name!r} as {each.kind}, which {have}, and "
            f"{codes.name!r} is stored {codes}",
            (Location(each.file, tensor=codes.name),),
            expected=each.kind,
            actual=codes.dtype,
            hint="save the checkpoint again with the library that quantized it",
            severity=None if known else Severity.WARNING,
        )


def _left_out(
    component: Component, store: Store, said: Mapping[str, Description]
) -> Iterator[Problem]:
    """Report the stored fields that no description names, once for each shard."""
    named = {part for each in said.values() for part in each.parts}
    lost: dict[str, list[str]] = defaultdict(list)
    for name, found in store.evidence.stored.items():
        if found.family.described and found.codes.name not in named:
            lost[found.codes.file].append(name)
    silent = {header.file for header in store.headers if not describes(header)}
    for file, names in lost.items():
        does = "describes no tensors, and" if file in silent else "does not describe"
        are = f"{count(len(names), 'weight')} of it" + (
            " are stored in fields" if file in silent else " stored in fields"
        )
        parts = (store.evidence.stored[name].codes.name for name in names)
        yield Problem(
            f"the header of {file}{of_component(component)} {does} {are}: "
            f"{listing(names)}",
            (Location(file), *(Location(file, tensor=part) for part in parts)),
            expected=0,
            actual=len(names),
            hint="save the checkpoint again with the library that quantized it; "
            "loaders put weights together by the header's metadata",
        )


RULES = (description,)
