"""QM2: that the readers of a config mean the same modules by its lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.families import DENSE
from qmanifest.findings import Location, Problem, Severity
from qmanifest.patterns import READERS, Comparison
from qmanifest.rules.base import Depth, of_component, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Entry
    from qmanifest.patterns import Disagreement, Reader
    from qmanifest.reading.stores import Store

NEVER_QUANTIZED: Final = ("embed", "norm")
"""Parts of the names of matrices that no reader asks a list about."""


@rule("QM212", "readers-disagree", Severity.WARNING, needs=Depth.HEADERS)
def readers_disagree(checkpoint: Checkpoint) -> Iterator[Problem]:
    """An entry means a stored matrix to one reader of its list, and not to another.

    Libraries that read the same list match in their own ways: parts of names, whole
    names, regular expressions. A name is left out that the rest of the list covers.

    ## Why it matters
    One library loads the checkpoint. The other builds a quantized layer for a dense
    matrix, or a dense layer for quantized codes, and stops or computes nonsense.

    ## Fix
    Write the full names of modules, which every reader matches alike.
    """
    for component, store in checkpoint.found():
        for entries in _lists(component):
            yield from _problems(checkpoint, component, store, entries)


def _lists(component: Component) -> Iterator[list[Entry]]:
    """Walk over the lists that more than one reader reads."""
    lists: dict[tuple[object, ...], list[Entry]] = {}
    for entry in component.entries:
        if entry.also_read:
            key = (entry.reader, entry.also_read, entry.purpose, entry.appended)
            lists.setdefault(key, []).append(entry)
    yield from lists.values()


def _problems(
    checkpoint: Checkpoint,
    component: Component,
    store: Store,
    entries: Sequence[Entry],
) -> Iterator[Problem]:
    """Report the entries of one list that readers differ about."""
    first = entries[0]
    readers = [READERS[each] for each in (first.reader, *first.also_read)]
    texts = [entry.pattern.text for entry in entries]
    comparison = Comparison(_matrices(store), first.appended)
    verb = "keeps" if first.purpose == "keep" else "quantizes"
    for found in comparison.of(texts, readers):
        entry = entries[found.text]
        examples = (*found.only_reader, *found.only_other)
        sides = (
            *_side(found.reader, found.other, verb, found.only_reader),
            *_side(found.other, found.reader, verb, found.only_other),
        )
        yield Problem(
            f"readers differ about {entry.pattern.text!r}{of_component(component)}, in "
            f"{found.number:,} matrices: {', and '.join(sides)}",
            (
                Location(checkpoint.config_name, entry.pointer, examples[0]),
                *(
                    Location(store.index[name].file, tensor=name)
                    for name in examples
                    if name in store.index
                ),
            ),
            expected=_meant(found),
            actual=entry.pattern.text,
            hint="write the full names of the modules, which every reader matches",
        )


def _matrices(store: Store) -> Iterator[str]:
    """Walk over the matrices that a reader asks a list about, in their order."""
    stored = store.evidence.stored
    for name in store.evidence.logical:
        tensor = store.index.get(name)
        last = name.removesuffix(".weight").rpartition(".")[2]
        if name in stored or (
            tensor is not None
            and tensor.dtype in DENSE
            and len(tensor.shape) > 1
            and not any(part in last for part in NEVER_QUANTIZED)
        ):
            yield name


def _side(
    reader: Reader, other: Reader, verb: str, names: Sequence[str]
) -> Iterator[str]:
    """Say what one reader does and the other does not."""
    if names:
        listed = ", ".join(map(repr, names))
        yield f"{reader.title} {verb} {listed}; {other.title} does not"


def _meant(found: Disagreement) -> str:
    """Name the readers that should mean the same."""
    return f"the same to {found.reader.title} and {found.other.title}"


RULES = (readers_disagree,)
