"""Files forced to disk while the rest of them is still being made.

A device may take as long for the last of what it was given as for all of it, unless
it was told to in between. So a thread does that, and the `fsync` at a file's end finds
little left.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

from qmanifest.writing.atomic import own_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

EARLY: Final = 16 * 1024 * 1024
"""Bytes that gather before they are forced to disk; less is not worth a thread."""


@contextmanager
def early_sync(stream: BinaryIO, path: Path, size: int) -> Iterator[EarlySync]:
    """Force a file to disk from time to time, until the block ends.

    No thread is left behind, and none has the descriptor once the stream is closed.

    Args:
        stream: of `atomic_file`.
        path: what to call the file in errors.
        size: bytes that it is going to have, for the message of a full disk.

    Raises:
        WriteError: the device failed. The system tells that once: a later `fsync` of
            the same file would not know.

    """
    sync = EarlySync(stream, path, size)
    try:
        yield sync
        sync.wait()
    finally:
        sync.close()


class EarlySync:
    """Forces what was written to disk, at most one time at once."""

    def __init__(self, stream: BinaryIO, path: Path, size: int) -> None:
        self._stream, self._path, self._size = stream, path, size
        self._gathered = 0
        self._pool: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None

    def wrote(self, count: int) -> None:
        """Learn that `count` more bytes were written; do not wait.

        Raises:
            WriteError: the device failed at what was written before.

        """
        self._gathered += count
        if self._gathered < EARLY or not hasattr(os, "fdatasync"):
            return  # macOS and Windows have no such call
        if self._last is not None and not self._last.done():
            return
        self.wait()
        self._gathered = 0
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "qmanifest-sync")
        self._last = self._pool.submit(os.fdatasync, self._stream.fileno())

    def wait(self) -> None:
        """Wait for what is on its way.

        Raises:
            WriteError: the device failed.

        """
        if self._last is not None:
            with own_errors(self._path, self._size):
                self._last.result()

    def close(self) -> None:
        """Wait for the thread to end, whatever it met."""
        if self._pool is not None:
            self._pool.shutdown()
