"""One pass over the bytes of a checkpoint's quantized and kept tensors.

They are read in the order of the files, in spans that a few threads take in turns, and
in pieces that a processor's own cache holds until they are judged.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

from qmanifest.reading.tensor_bytes import PIECE, open_shard
from qmanifest.rules.value_counts import Counts
from qmanifest.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from qmanifest.checkpoint import Checkpoint

SPAN: Final = 64 * PIECE
"""Bytes that a thread reads before it takes others: large beside what a span costs."""


class Progress(Protocol):
    """Told after every span how many bytes of how many are read."""

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Learn that `done` bytes are read, the last of them of tensor `name`."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Bytes of one tensor, counted from its first."""

    counts: Counts
    begin: int
    end: int


@dataclass(slots=True)
class _Span:
    """Parts of tensors that lie behind each other in one shard."""

    root: Path
    file: str
    parts: list[_Part]
    nbytes: int = 0


_SCANS: Final[WeakKeyDictionary[Checkpoint, tuple[Counts, ...]]] = WeakKeyDictionary()
"""What was counted, for as long as the checkpoint is in use: five rules ask for it."""


def scan(
    checkpoint: Checkpoint, progress: Progress | None = None
) -> tuple[Counts, ...]:
    """Read every quantized and kept tensor once, and count what it holds.

    Tensors that reach beyond their file are left out: they are cut (QM002).

    Raises:
        FileProblem: a file cannot be read, or was cut since its header was read.

    """
    if checkpoint not in _SCANS:
        _SCANS[checkpoint] = _scan(checkpoint, progress)
    return _SCANS[checkpoint]


def _scan(checkpoint: Checkpoint, progress: Progress | None) -> tuple[Counts, ...]:
    """Read what `_wanted` lists, telling how far it got."""
    wanted = list(_wanted(checkpoint))
    spans = list(_spans(wanted))
    total, done = sum(span.nbytes for span in spans), 0
    for span, found in zip(spans, _read_all(spans), strict=True):
        for part, counted in zip(span.parts, found, strict=True):
            part.counts.merge(counted)
        done += span.nbytes
        if progress is not None:
            progress(done, total, span.parts[-1].counts.tensor.name)
    return tuple(counts for _, counts in wanted)


def _wanted(checkpoint: Checkpoint) -> Iterator[tuple[Path, Counts]]:
    """List the tensors to read: parts of weights, and what is kept."""
    for component, store in checkpoint.found():
        sizes = {header.file: header.size for header in store.headers}
        parts = [
            (part.name, part.role, weight)
            for weight in component.weights
            for part in weight.parts()
        ]
        kept = [(each.name, "kept", None) for each in component.kept]
        for name, role, weight in (*parts, *kept):
            tensor = store.index.get(name)
            if tensor is not None and tensor.end <= sizes[tensor.file]:
                yield store.root, Counts(tensor, role, weight)


def _spans(wanted: Iterable[tuple[Path, Counts]]) -> Iterator[_Span]:
    """Cut large tensors and gather small ones, in the order of their bytes."""
    span: _Span | None = None
    for root, counts in sorted(wanted, key=_place):
        tensor = counts.tensor
        for begin in range(0, tensor.nbytes, SPAN):
            part = _Part(counts, begin, min(begin + SPAN, tensor.nbytes))
            size = part.end - part.begin
            here = span and (span.root, span.file) == (root, tensor.file)
            if span is None or not here or span.nbytes + size > SPAN:
                if span is not None:
                    yield span
                span = _Span(root, tensor.file, [])
            span.parts.append(part)
            span.nbytes += size
    if span is not None:
        yield span


def _place(each: tuple[Path, Counts]) -> tuple[Path, str, int]:
    root, counts = each
    return root, counts.tensor.file, counts.tensor.begin


def _read_all(spans: list[_Span]) -> Iterator[list[Counts]]:
    """Read spans on as many threads as there are, and give the counts in order."""
    threads = min(thread_count(), len(spans))
    if threads < 2:  # noqa: PLR2004 - one thread is the caller's own
        yield from map(_read, spans)
        return
    with ThreadPoolExecutor(threads, "qmanifest-scan") as pool:
        yield from pool.map(_read, spans)  # what is left is cancelled if one fails


def _read(span: _Span) -> list[Counts]:
    """Read one span, and count each part of it by itself."""
    found = []
    with open_shard(span.root, span.file, PIECE) as shard:
        for part in span.parts:
            whole = part.counts
            counts = Counts(whole.tensor, whole.role, whole.weight)
            for piece in shard.pieces(whole.tensor, part.begin, part.end):
                counts.add(piece)
            found.append(counts)
    return found
