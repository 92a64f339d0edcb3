"""Shards: which tensor goes to which file, and the files, written as a stream.

A plan fixes every byte count before any data exists, so memory stays bounded by what
the caller yields, and sizes can be told without writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from qmanifest.dtypes import DTYPES
from qmanifest.errors import WriteError
from qmanifest.writing.atomic import atomic_file
from qmanifest.writing.early_sync import early_sync
from qmanifest.writing.header import (
    ALIGNMENT,
    OutputTensor,
    check_tensors,
    encode_header,
    planned_header_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from typing_extensions import Buffer

__all__ = [
    "SHARD_SIZE",
    "OutputTensor",
    "Progress",
    "ShardPlan",
    "plan_shards",
    "planned_header_bytes",
    "shard_names",
    "shifted",
    "write_shard",
    "write_shards",
]

SHARD_SIZE: Final = 5_000_000_000
"""Most tensor bytes of a shard, unless one tensor is larger."""


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """One file to write, and its tensors in the order of their data."""

    file: str
    tensors: tuple[OutputTensor, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensor data, without the header."""
        return sum(tensor.nbytes for tensor in self.tensors)


class Progress(Protocol):
    """Told after every buffer how much of the data is written."""

    def __call__(self, done_bytes: int, total_bytes: int, name: str, /) -> None:
        """Learn that `done_bytes` are written, the last of them of tensor `name`."""


def plan_shards(
    specs: Sequence[OutputTensor], shard_size: int = SHARD_SIZE, stem: str = "model"
) -> tuple[ShardPlan, ...]:
    """Fill shards greedily, in the given order, with at most `shard_size` tensor bytes.

    A larger tensor gets a shard of its own. Inside a shard only tensors whose bytes
    are no multiple of 8 move, to its end, so that every tensor starts at a multiple
    of its element. A model without tensors still gets one file.

    Raises:
        WriteError: a name, dtype or shape that no shard can hold, a repeated name,
            a `shard_size` below 1, or a `stem` that is no plain file name.

    """
    _check_stem(stem)
    if shard_size < 1:
        raise WriteError(f"shard size {shard_size} is below 1 byte. Raise it.")
    check_tensors(specs)
    filled: list[list[OutputTensor]] = [[]]
    room = shard_size
    for spec in specs:
        if spec.nbytes > room and filled[-1]:
            filled.append([])
            room = shard_size
        filled[-1].append(spec)
        room -= spec.nbytes
    names = shard_names(len(filled), stem)
    return tuple(
        ShardPlan(name, _aligned(tensors))
        for name, tensors in zip(names, filled, strict=True)
    )


def shard_names(count: int, stem: str = "model") -> tuple[str, ...]:
    """Name `count` shards: `STEM.safetensors`, or numbered where there are several."""
    if count == 1:
        return (f"{stem}.safetensors",)
    return tuple(
        f"{stem}-{number:05d}-of-{count:05d}.safetensors"
        for number in range(1, count + 1)
    )


def write_shard(
    folder: Path,
    plan: ShardPlan,
    data: Callable[[OutputTensor], Iterable[Buffer]],
    metadata: Mapping[str, str],
    progress: Progress | None = None,
) -> None:
    """Write one shard, whole or not at all.

    Args:
        folder: where the file goes; must exist.
        plan: the file and its tensors.
        data: asked once per tensor, in the plan's order, for its little-endian,
            row-major bytes, in buffers of any size. One buffer is held at a time.
        metadata: strings for the header's `__metadata__`; left out when empty.
        progress: told after every buffer; its total is this shard's tensor bytes.

    Raises:
        WriteError: a tensor's data is longer or shorter than planned, or the file
            cannot be written. The file of that name, if any, is then unchanged.

    """
    header = encode_header(plan.tensors, metadata)
    path, total, done = folder / plan.file, plan.nbytes, 0
    with (
        atomic_file(path, len(header) + total) as stream,
        early_sync(stream, path, len(header) + total) as early,
    ):
        stream.write(header)
        for spec in plan.tensors:
            for count in _copy(stream, spec, data(spec)):
                done += count
                early.wrote(count)
                if progress is not None:
                    progress(done, total, spec.name)


def write_shards(
    folder: Path,
    plans: Sequence[ShardPlan],
    data: Callable[[OutputTensor], Iterable[Buffer]],
    metadata: Mapping[str, str],
    progress: Progress | None = None,
) -> None:
    """Write shards one after another; `progress` counts over all of them.

    Raises:
        WriteError: as `write_shard`.

    """
    total, before = sum(plan.nbytes for plan in plans), 0
    for plan in plans:
        write_shard(folder, plan, data, metadata, shifted(progress, before, total))
        before += plan.nbytes


def shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Count from `before`, out of `total`."""
    if progress is None:
        return None

    def report(done_bytes: int, _: int, name: str, /) -> None:
        progress(before + done_bytes, total, name)

    return report


def _copy(
    stream: BinaryIO, spec: OutputTensor, buffers: Iterable[Buffer]
) -> Iterable[int]:
    """Write a tensor's buffers, and yield the bytes of each once it is written."""
    planned, written = spec.nbytes, 0
    for buffer in buffers:
        view = memoryview(buffer)
        if not view.c_contiguous:
            raise WriteError(f"data of {spec.name!r} has gaps. Yield it contiguous.")
        written += view.nbytes
        if written > planned:
            raise _wrong_size(spec, f"more than {planned:,}")
        stream.write(view)
        yield view.nbytes
    if written < planned:
        raise _wrong_size(spec, f"only {written:,}")


def _wrong_size(spec: OutputTensor, found: str) -> WriteError:
    return WriteError(
        f"tensor {spec.name!r} yields {found} bytes; {spec.dtype} {list(spec.shape)} "
        f"takes exactly {spec.nbytes:,}. Yield what the plan says."
    )


def _aligned(tensors: list[OutputTensor]) -> tuple[OutputTensor, ...]:
    """Move ragged tensors to the end, widest elements first; keep all else in order."""

    def rank(spec: OutputTensor) -> tuple[bool, int]:
        ragged = spec.nbytes % ALIGNMENT != 0
        return ragged, -DTYPES[spec.dtype].bits if ragged else 0

    return tuple(sorted(tensors, key=rank))


def _check_stem(stem: str) -> None:
    """Refuse a stem, perhaps out of a config, that would leave the folder."""
    if (
        not stem
        or stem.startswith(".")
        or not stem.isprintable()
        or set(stem) & {*"/\\:"}
    ):
        raise WriteError(
            f"{stem!r} is no plain file name. Name the component by letters, digits, "
            "'-' and '_'."
        )
