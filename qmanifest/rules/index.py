"""QM4, index: that the index file describes the shards that are here."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity, json_pointer
from qmanifest.reading.wording import count, listing
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.indexed import SHOWN, indexed_sets, is_foreign
from qmanifest.rules.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.reading.index_file import IndexFile
    from qmanifest.reading.shards import ShardSet


@rule("QM402", "not-in-its-shard", Severity.ERROR, needs=Depth.HEADERS, any_files=True)
def not_in_its_shard(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The index maps a tensor to a shard that has it not, or does not map it at all.

    ## Why it matters
    Loaders that go by the index fail on the first kind and skip the second.

    ## Fix
    Write the index again from the shards.
    """
    for shards, index_file in indexed_sets(checkpoint):
        if is_foreign(shards, index_file) or _is_exact(shards, index_file):
            continue
        readable = {h.file: {t.name for t in h.tensors} for h in shards.headers}
        whole = {header.file for header in shards.headers if header.readable}
        for tensor, shard in index_file.weight_map.items():
            file = shards.prefix + shard
            if file in whole and tensor not in readable[file]:
                yield _misplaced(shards, index_file, tensor, file)
        for file in sorted(whole):
            unlisted = sorted(readable[file] - index_file.weight_map.keys())
            if unlisted:
                known = file.removeprefix(shards.prefix) in index_file.shards
                yield Problem(
                    f"{index_file.file} does not list "
                    f"{count(len(unlisted), 'tensor')} of "
                    f"{file}: {listing(unlisted)}",
                    (
                        Location(index_file.file, json_pointer("weight_map")),
                        *(Location(file, tensor=name) for name in unlisted),
                    ),
                    actual=len(unlisted),
                    hint="write the index again from the shards"
                    if known
                    else "remove the file, or write the index again",
                    severity=None if known else Severity.WARNING,
                )


def _is_exact(shards: ShardSet, index_file: IndexFile) -> bool:
    """Whether the index maps every tensor to where it is, and nothing else."""
    found, mapped = shards.index, index_file.weight_map
    if found.repeats or len(found) != len(mapped):
        return False
    names = iter(found)  # header by header
    for header in shards.headers:
        count = len(header.tensors) if header.readable else 0
        mapped_to = list(map(mapped.get, islice(names, count)))
        if mapped_to != [header.file.removeprefix(shards.prefix)] * count:
            return False
    return True


def _misplaced(
    shards: ShardSet, index_file: IndexFile, tensor: str, file: str
) -> Problem:
    """Say where a tensor is that is not where the index has it."""
    found = shards.index.get(tensor)
    where = f"it is in {found.file}" if found else "no shard has it"
    at = Location(index_file.file, json_pointer("weight_map", tensor), tensor)
    related = Location(found.file if found else file, tensor=tensor)
    return Problem(
        f"{index_file.file} maps {tensor!r} to {file}, which has it not; {where}",
        (at, related),
        expected=file,
        actual=found.file if found else None,
        hint="write the index again from the shards",
    )


@rule("QM403", "stale-index", Severity.ERROR, needs=Depth.FILES, any_files=True)
def stale_index(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The index is another checkpoint's: it names none of the shards that are here.

    Converters that copy every JSON file of the source model leave such an index.

    ## Why it matters
    Loaders that go by it find no shard, or the tensors of the unquantized model.

    ## Fix
    Delete the index, or write it again from the shards.
    """
    for shards, index_file in indexed_sets(checkpoint):
        if not is_foreign(shards, index_file):
            continue
        absent = sorted(index_file.shards)
        unlisted = sorted(shards.index.keys() - index_file.weight_map.keys())
        omits = f" and lists none of {listing(unlisted)}" if unlisted else ""
        yield Problem(
            f"{index_file.file} is of another checkpoint: it names "
            f"{count(len(absent), 'absent shard')} ({listing(absent)}){omits}; here is "
            f"{', '.join(shards.files[:SHOWN])}",
            (
                Location(index_file.file, json_pointer("weight_map")),
                *(Location(shards.files[0], tensor=name) for name in unlisted),
            ),
            expected=list(shards.files),
            actual=list(absent),
            hint="delete the index, or write it again from the shards",
        )


@rule("QM404", "total-size", Severity.WARNING, needs=Depth.HEADERS, any_files=True)
def total_size(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The index's `total_size` is not the bytes of the tensors.

    ## Why it matters
    Loaders plan memory and progress by it, and it tells a stale index.

    ## Fix
    Write the index again from the shards.
    """
    for shards, index_file in indexed_sets(checkpoint):
        if index_file.total_size is None or not shards.complete:
            continue
        if is_foreign(shards, index_file):
            continue
        stored = _stored_bytes(shards)
        if stored != index_file.total_size:
            pointer = json_pointer("metadata", "total_size")
            yield Problem(
                f"total_size is {index_file.total_size:,} and the tensors have "
                f"{stored:,} bytes",
                (Location(index_file.file, pointer),),
                expected=stored,
                actual=index_file.total_size,
                hint=f"set total_size to {stored}",
            )


def _stored_bytes(shards: ShardSet) -> int:
    """Sum the bytes of the tensors; a name that is there twice counts once."""
    if shards.index.repeats or any(header.defects for header in shards.headers):
        return sum(tensor.nbytes for tensor in shards.index.values())
    # Of a file without defects every byte behind the header is one tensor's.
    return sum(header.size - header.header_bytes for header in shards.headers)


@rule("QM407", "total-parameters", Severity.WARNING, needs=Depth.HEADERS)
def total_parameters(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The index's `total_parameters` is not the number of logical parameters.

    Packed words count as the codes in them, scales and biases not at all.

    ## Why it matters
    It is the number that model pages show.

    ## Fix
    Write the index again from the shards.
    """
    for component, store in checkpoint.found():
        for shards in store.sets:
            index_file = shards.index_file
            if index_file is None or index_file.total_parameters is None:
                continue
            if len(store.sets) > 1 or not store.complete:
                continue
            stored = parameters(component, store)
            if stored != index_file.total_parameters:
                pointer = json_pointer("metadata", "total_parameters")
                yield Problem(
                    f"total_parameters is {index_file.total_parameters:,} and the "
                    f"tensors hold {stored:,}",
                    (Location(index_file.file, pointer),),
                    expected=stored,
                    actual=index_file.total_parameters,
                    hint=f"set total_parameters to {stored}",
                )


RULES = (not_in_its_shard, stale_index, total_size, total_parameters)
