"""QM4, files: that every shard is there, once, and of one checkpoint."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity, json_pointer
from qmanifest.patterns import match
from qmanifest.reading.wording import count, listing
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.indexed import SHOWN, indexed_sets, is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component
    from qmanifest.reading.shards import ShardSet
    from qmanifest.reading.stores import Store


@rule("QM401", "missing-shard", Severity.ERROR, needs=Depth.FILES, any_files=True)
def missing_shard(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A shard that the index names, or a component's whole file, is not there.

    A config of several models may be kept apart from their weights: where none of
    the components is here, that is a warning, and the config alone is checked.

    ## Why it matters
    Some loaders skip what is absent and leave its layers at random values.

    ## Fix
    Download the shard, or say where a component is with `--component NAME=PATH`.
    """
    for shards, index_file in indexed_sets(checkpoint):
        if is_foreign(shards, index_file):
            continue
        lost = defaultdict(list)
        missing = set(shards.missing)
        if not missing:
            continue
        for tensor, shard in index_file.weight_map.items():
            if shards.prefix + shard in missing:
                lost[shard].append(tensor)
        for shard, tensors in lost.items():
            pointer = json_pointer("weight_map", tensors[0])
            yield Problem(
                f"{index_file.file} maps {count(len(tensors), 'tensor')} to {shard}, "
                "which is "
                f"not there: {listing(tensors)}",
                (
                    Location(index_file.file, pointer),
                    Location(shards.prefix + shard),
                    *(Location(shards.prefix + shard, tensor=t) for t in tensors),
                ),
                expected=shard,
                hint="download or write the shard again",
            )
    yield from _missing_components(checkpoint)


def _missing_components(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report the components that no file holds."""
    if checkpoint.manifest is None or checkpoint.config_only:
        return
    several = any(c.name for c in checkpoint.manifest.components)
    apart = several and not checkpoint.all_stores
    for component in checkpoint.manifest.components:
        if component.name in checkpoint.stores or not _promises(component):
            continue
        if _is_held(checkpoint, component):
            continue  # by several files: QM106 asks which
        which = f"component {component.name!r}" if component.name else "the checkpoint"
        weights = len(component.weights)
        yield Problem(
            f"no safetensors file holds {which}, whose config promises "
            f"{count(weights, 'quantized tensor')}",
            (
                Location(checkpoint.config_name, component.pointer),
                Location(f"{component.name or 'model'}.safetensors"),
            ),
            expected=weights,
            actual=0,
            hint=f"say where it is with --component {component.name or 'NAME'}=PATH, "
            "or check the config alone with --config-only",
            severity=Severity.WARNING if apart else None,
        )


def _promises(component: Component) -> bool:
    """Whether the component promises any tensor, so that its absence is news."""
    quantizes = any(entry.purpose == "quantize" for entry in component.entries)
    return bool(component.weights) or quantizes or not component.name


def _is_held(checkpoint: Checkpoint, component: Component) -> bool:
    """Whether files that belong to no component hold tensors that it promises."""
    quantizing = [e.pattern for e in component.entries if e.purpose == "quantize"]
    found = (match(quantizing, store.index) for store in checkpoint.loose)
    return any(len(matches.dead) < len(quantizing) for matches in found)


@rule("QM405", "in-two-files", Severity.ERROR, needs=Depth.HEADERS, any_files=True)
def in_two_files(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Two files hold a tensor of the same name.

    ## Why it matters
    Loaders that read every file take the last one they meet, which is up to the
    order of the file names.

    ## Fix
    Remove the stray file; the index, where there is one, says which belongs.
    """
    for store in checkpoint.all_stores:
        for other in store.index.repeats:
            first = store.index[other.name]
            mapped = _mapped(store, other.name)
            belongs = f"; the index maps it to {mapped}" if mapped else ""
            yield Problem(
                f"{other.name!r} is in {first.file} ({first}) and in {other.file} "
                f"({other}){belongs}",
                (
                    Location(other.file, tensor=other.name),
                    Location(first.file, tensor=other.name),
                ),
                expected=first.file,
                actual=other.file,
                hint="remove the stray file",
            )


def _mapped(store: Store, tensor: str) -> str | None:
    """Look a tensor up in the store's index files."""
    for shards in store.sets:
        if shards.index_file is not None:
            shard = shards.index_file.weight_map.get(tensor)
            if shard is not None:
                return shards.prefix + shard
    return None


@rule("QM406", "shard-gap", Severity.ERROR, needs=Depth.FILES, any_files=True)
def shard_gap(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The numbers in the shards' names leave one out, or speak of several totals.

    ## Why it matters
    A count of the files does not show it, and without an index nothing says which
    tensors are lost.

    ## Fix
    Download or write the missing shard.
    """
    for store in checkpoint.all_stores:
        for shards in store.sets:
            yield from _gaps(shards)


def _gaps(shards: ShardSet) -> Iterator[Problem]:
    """Report the numbers that are missing, where no index says it better."""
    counts = sorted({total for _, _, total in shards.numbering})
    at = tuple(Location(file) for file, _, _ in shards.numbering[:SHOWN])
    if len(counts) > 1:
        yield Problem(
            f"shards of {' and '.join(map(str, counts))} lie side by side: "
            f"{listing([file for file, _, _ in shards.numbering])}",
            at,
            actual=list(counts),
            hint="remove the shards of the other checkpoint",
        )
        return
    indexed = shards.index_file is not None and shards.index_file.readable
    if not counts or indexed:
        return
    (total,) = counts
    present = {number for _, number, _ in shards.numbering}
    nearby = range(1, min(total, len(present) + SHOWN) + 1)
    absent = [number for number in nearby if number not in present]
    if absent:
        stem = f"{shards.prefix}{shards.name}"
        files = [f"{stem}-{n:05d}-of-{total:05d}.safetensors" for n in absent[:SHOWN]]
        yield Problem(
            f"{len(present)} of {total} shards are here; missing: {', '.join(files)}",
            (*(Location(file) for file in files), *at),
            expected=total,
            actual=len(present),
            hint="download or write the missing shards",
        )


RULES = (missing_shard, in_two_files, shard_gap)
