"""Read the bytes of stored tensors: with `pread`, in pieces, and never by `mmap`.

A file that another process cuts while it is mapped kills the reader; here it is a
`FileProblem`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from qmanifest.findings import DefectKind
from qmanifest.reading.files import FileProblem, open_regular, unreadable
from qmanifest.reading.wording import count, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qmanifest.tensors import TensorInfo

CHUNK: Final = 8 * 1024 * 1024
"""Bytes of one read."""
PIECE: Final = 512 * 1024
"""Bytes of one piece, which a processor's own cache holds until they are judged."""


def read_tensor(
    root: Path, tensor: TensorInfo, into: bytearray | None = None
) -> memoryview:
    """Read all bytes of one tensor.

    Args:
        root: the folder that `tensor.file` is relative to.
        tensor: from the header of that file.
        into: where to put them; at least `tensor.nbytes` long.

    Returns:
        The bytes, `tensor.nbytes` long; a part of `into` where it was given.

    Raises:
        FileProblem: the file cannot be read, or is shorter than its header says.
        ValueError: `into` is too small.

    """
    with _opened(root, tensor) as descriptor:
        buffer = bytearray(tensor.nbytes) if into is None else into
        if len(buffer) < tensor.nbytes:
            raise ValueError(
                f"tensor {tensor.name!r} has {count(tensor.nbytes, 'byte')}; "
                f"the buffer has {len(buffer):,}"
            )
        view = memoryview(buffer)[: tensor.nbytes]
        for start in range(0, tensor.nbytes, CHUNK):
            _fill(descriptor, view[start : start + CHUNK], tensor, tensor.begin + start)
    return view


def iter_tensor(
    root: Path, tensor: TensorInfo, chunk: int = PIECE
) -> Iterator[memoryview]:
    """Yield the bytes of one tensor in order, `chunk` at a time, in one buffer.

    A chunk is overwritten by the next one, so copy what should last. Elements of up
    to 64 bits do not straddle two chunks where `chunk` is a multiple of 8 bytes; those
    of 6 bits do unless it is a multiple of 24.

    Raises:
        FileProblem: the file cannot be read, or is shorter than its header says.
        ValueError: `chunk` is not positive.

    """
    with open_shard(root, tensor.file, chunk) as shard:
        yield from shard.pieces(tensor, 0, tensor.nbytes)


@contextmanager
def open_shard(root: Path, file: str, chunk: int = PIECE) -> Iterator[Shard]:
    """Open a shard to read many tensors of it, or parts of them, through one buffer.

    Raises:
        FileProblem: the file cannot be opened.
        ValueError: `chunk` is not positive.

    """
    if chunk <= 0:
        raise ValueError(f"a chunk has at least 1 byte, not {chunk}")
    with open_regular(root / file) as (descriptor, size):
        yield Shard(descriptor, size, chunk)


class Shard:
    """An open shard, read piece by piece."""

    def __init__(self, descriptor: int, size: int, chunk: int) -> None:
        self._descriptor, self._size, self._chunk = descriptor, size, chunk
        self._buffer = memoryview(b"")

    def pieces(self, tensor: TensorInfo, begin: int, end: int) -> Iterator[memoryview]:
        """Yield the bytes of a tensor from `begin` to `end`, counted from its first.

        A piece is overwritten by the next one, of whatever tensor.

        Raises:
            FileProblem: the file cannot be read, or is shorter than its header says.

        """
        _require_whole(tensor, self._size)
        chunk = min(self._chunk, end - begin)
        if len(self._buffer) < chunk:
            self._buffer = memoryview(bytearray(chunk))
        for start in range(begin, end, self._chunk):
            piece = self._buffer[: min(chunk, end - start)]
            _fill(self._descriptor, piece, tensor, tensor.begin + start)
            yield piece


@contextmanager
def _opened(root: Path, tensor: TensorInfo) -> Iterator[int]:
    """Open a tensor's file, after a look at its size: nothing is allocated in vain."""
    with open_regular(root / tensor.file) as (descriptor, size):
        _require_whole(tensor, size)
        yield descriptor


def _require_whole(tensor: TensorInfo, size: int) -> None:
    if size < tensor.end:
        raise _cut(tensor, size)


def _fill(descriptor: int, view: memoryview, tensor: TensorInfo, offset: int) -> None:
    """Fill a view from the file, in as many reads as the system needs."""
    done = 0
    while done < len(view):
        try:
            got = os.preadv(descriptor, [view[done:]], offset + done)
        except OSError as error:
            raise unreadable(DefectKind.NOT_SAFETENSORS, error) from error
        if got == 0:
            raise _cut(tensor, offset + done)
        done += got


def _cut(tensor: TensorInfo, size: int) -> FileProblem:
    return FileProblem(
        DefectKind.TRUNCATED,
        f"the file was cut: tensor {quoted(tensor.name)} ends at byte {tensor.end:,}, "
        f"and the file has {size:,} bytes",
        "fetch the file again, and do not change it while it is read",
        expected=tensor.end,
        actual=size,
    )
