"""Digests of whole shards: the SHA-256 that the Hub shows, and that `sha256sum` checks.

hashlib lets go of the interpreter, so that each thread hashes a file of its own.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, Protocol

from qmanifest.errors import QManifestError
from qmanifest.findings import DefectKind
from qmanifest.reading.files import FileProblem, is_inside, open_regular, unreadable
from qmanifest.reading.shard_names import EXTENSION, unsafe_reason
from qmanifest.reading.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIECE: Final = 1024 * 1024
"""Bytes of one read."""


class HashError(QManifestError):
    """A shard cannot be hashed; says which one, why, and what helps."""


class Progress(Protocol):
    """Told after every piece how many bytes are hashed, by one thread at once."""

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Learn that `done` bytes are hashed, the last of them of file `name`."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What one shard's bytes come to."""

    file: str
    """Relative to the folder, with `/`."""
    size: int
    """In bytes."""
    sha256: str
    """64 hexadecimal digits."""


def hash_shards(
    path: Path, threads: int = 1, progress: Progress | None = None
) -> tuple[Digest, ...]:
    """Hash every safetensors file of a folder and of its subfolders, or one file.

    Memory is bounded by a piece for each thread, whatever the files' size. Hidden
    files and folders are left alone, and links to folders are not followed.

    Args:
        path: a folder, or one file, which may be a link to anywhere.
        threads: files to hash at once.
        progress: told how far all files together are, on any thread.

    Returns:
        The digests in the order of the names; none where there is no such file.

    Raises:
        HashError: the folder cannot be listed; a file cannot be read, is no regular
            file, leads out of the folder or changes meanwhile.

    """
    root, names = (path, _listed(path)) if path.is_dir() else (path.parent, [path.name])
    sizes = {name: _size(root / name, name) for name in names}
    run = _Run(root, sum(sizes.values()), progress)
    largest_first = sorted(names, key=lambda name: -sizes[name])
    with ThreadPoolExecutor(max(1, threads), "qmanifest-hash") as pool:
        try:
            work = {name: pool.submit(run.digest, name) for name in largest_first}
            return tuple(work[name].result() for name in names)
        finally:  # Ctrl-C lands here too
            run.stop.set()
            pool.shutdown(cancel_futures=True)


class _Run:
    """What the threads share."""

    def __init__(self, root: Path, total: int, progress: Progress | None) -> None:
        self.root, self.total, self.progress = root, total, progress
        self.stop = Event()
        self._lock, self._done = Lock(), 0

    def digest(self, name: str) -> Digest:
        """Hash one file; in part where another file failed, whose error is raised."""
        try:
            with open_regular(self.root / name) as (descriptor, size):
                return self._of_open(descriptor, size, name)
        except FileProblem as problem:
            self.stop.set()  # the other files need not go on
            raise _refusal(name, problem) from problem

    def _of_open(self, descriptor: int, size: int, name: str) -> Digest:
        before = os.fstat(descriptor).st_mtime_ns
        digest, read = hashlib.sha256(), 0
        piece = memoryview(bytearray(min(PIECE, size + 1)))
        while (got := _read(descriptor, piece)) and not self.stop.is_set():
            digest.update(piece[:got])
            read += got
            self._tell(got, name)
        if not self.stop.is_set() and (
            read != size or before != os.fstat(descriptor).st_mtime_ns
        ):
            raise FileProblem(
                DefectKind.TRUNCATED,
                "the file changed while it was read",
                "hash it again when nothing writes to it",
            )
        return Digest(name, size, digest.hexdigest())

    def _tell(self, count: int, name: str) -> None:
        with self._lock:
            self._done += count
            if self.progress is not None:
                self.progress(self._done, self.total, name)


def _read(descriptor: int, piece: memoryview) -> int:
    try:
        return os.readv(descriptor, [piece])
    except OSError as error:
        raise unreadable(DefectKind.NOT_SAFETENSORS, error) from error


def _listed(root: Path) -> list[str]:
    """Find the safetensors files below a folder, and refuse those that lead out."""
    names = sorted(_walk(root))
    for name in names:
        reason = unsafe_reason(name)
        if reason is not None:
            raise HashError(f"the file name {quoted(name)} {reason}. Rename the file.")
        if not is_inside(root, root / name):
            raise HashError(
                f"{quoted(name)} is a link that leads out of the folder, and was not "
                "opened. Replace the link by the file itself, or hash that file alone."
            )
    return names


def _walk(root: Path) -> Iterator[str]:
    for folder, below, files in os.walk(root, onerror=_unlisted):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in files:
            if name.endswith(EXTENSION) and not name.startswith("."):
                yield (Path(folder) / name).relative_to(root).as_posix()


def _unlisted(error: OSError) -> None:
    raise HashError(
        f"the folder {quoted(str(error.filename))} cannot be listed: "
        f"{error.strerror or error}. Check the path and its permissions."
    ) from error


def _size(path: Path, name: str) -> int:
    """Look at a file before any is hashed, so that a bad one is told of at once."""
    try:
        with open_regular(path) as (_, size):
            return size
    except FileProblem as problem:
        raise _refusal(name, problem) from problem


def _refusal(name: str, problem: FileProblem) -> HashError:
    hint = problem.hint[:1].upper() + problem.hint[1:]
    return HashError(f"{quoted(name)}: {problem.message}. {hint}.")


def checksum_lines(digests: Sequence[Digest]) -> list[str]:
    """Write digests as `sha256sum --check` reads them."""
    return [f"{each.sha256}  {each.file}" for each in digests]
