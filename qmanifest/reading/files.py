"""Open files that a stranger may have made: regular files only, and never too much.

A FIFO cannot hang these functions and a device cannot feed them, because the type of
the file is asked before it is opened and again of what was opened.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qmanifest.errors import QManifestError
from qmanifest.findings import Defect, DefectKind, JsonValue, Location, Problem
from qmanifest.reading.wording import count, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE: Final = 64 * 1024 * 1024
"""Bytes of one `pread`: all of most files, since what comes in pieces is copied."""


class FileProblem(QManifestError):  # noqa: N818 - becomes a defect, nobody sees it raised
    """A file cannot be read as what it should be; says so as a defect would."""

    def __init__(
        self,
        kind: DefectKind,
        message: str,
        hint: str,
        expected: JsonValue = None,
        actual: JsonValue = None,
    ) -> None:
        self.kind = kind
        self.message = message
        self.hint = hint
        self.expected = expected
        self.actual = actual
        super().__init__(message)

    def defect(self, file: str, byte_range: tuple[int, int] | None = None) -> Defect:
        """Report this as a defect of `file`."""
        return Defect(
            self.kind,
            Problem(
                self.message,
                (Location(file=file, byte_range=byte_range),),
                expected=self.expected,
                actual=self.actual,
                hint=self.hint,
            ),
        )


@contextmanager
def open_regular(
    path: Path, kind: DefectKind = DefectKind.NOT_SAFETENSORS
) -> Iterator[tuple[int, int]]:
    """Open a regular file for reading, as its descriptor and its size in bytes.

    Args:
        path: the file; symbolic links are followed (see `is_inside`).
        kind: what to call a file that cannot be opened.

    Raises:
        FileProblem: absent, unreadable, or not a regular file.

    """
    try:
        # Asked before the open too: opening some devices already does something.
        _refuse_irregular(path.stat().st_mode, kind)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unopened(path, kind, error) from error
    try:
        found = os.fstat(descriptor)
        _refuse_irregular(found.st_mode, kind)
        yield descriptor, found.st_size
    finally:
        os.close(descriptor)


def read_whole(path: Path, limit: int) -> bytes:
    """Read a regular file that may have at most `limit` bytes.

    Raises:
        FileProblem: absent, unreadable, not a regular file, or over the limit.

    """
    kind = DefectKind.UNREADABLE_JSON
    with open_regular(path, kind) as (descriptor, size):
        if size > limit:
            raise FileProblem(
                DefectKind.OVER_LIMIT,
                f"the file has {count(size, 'byte')}; at most {limit:,} are read",
                "check that this is the right file, and make it smaller",
                expected=limit,
                actual=size,
            )
        return read_at(descriptor, 0, size, kind)


def read_at(
    descriptor: int,
    offset: int,
    length: int,
    kind: DefectKind = DefectKind.NOT_SAFETENSORS,
) -> bytes:
    """Read `length` bytes from `offset` on; fewer where the file ends before.

    Raises:
        FileProblem: the system could not read.

    """
    pieces: list[bytes] = []
    end = offset + length
    try:
        while offset < end:
            piece = os.pread(descriptor, min(end - offset, _PIECE), offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
    except OSError as error:
        raise unreadable(kind, error) from error
    return b"".join(pieces)


def unreadable(kind: DefectKind, error: OSError) -> FileProblem:
    """Say that the system failed to read an open file."""
    return FileProblem(
        kind,
        f"the file cannot be read: {error.strerror or error}",
        "check the disk or the network mount",
    )


def is_inside(root: Path, path: Path) -> bool:
    """Whether `path`, with its links resolved, lies in the folder `root`.

    A hub cache keeps `snapshots/<revision>/file` as a link to `../../blobs/<hash>`;
    the blobs of the snapshot's own repository count as inside.
    """
    if path.parent == root and path.is_file() and not path.is_symlink():
        return True  # whatever `root` itself is a link to
    try:
        home, target = Path(os.path.realpath(root)), Path(os.path.realpath(path))
    except (OSError, ValueError):
        return False
    return target.is_relative_to(home) or target.parent == _blobs(home)


def _blobs(home: Path) -> Path | None:
    """Find the blobs of the hub cache that `home` is a snapshot of, or lies in."""
    for folder in (home, *home.parents):
        if folder.parent.name == "snapshots":
            return folder.parent.parent / "blobs"
    return None


_TYPES: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def _refuse_irregular(mode: int, kind: DefectKind) -> None:
    if stat.S_ISREG(mode):
        return
    found = next((name for test, name in _TYPES if test(mode)), "a special file")
    raise FileProblem(
        kind,
        f"{found} stands where a regular file should",
        "put the file itself there",
        expected="a regular file",
        actual=found,
    )


def _unopened(path: Path, kind: DefectKind, error: OSError | ValueError) -> FileProblem:
    """Say why a file could not be opened, and for a link where it leads."""
    if isinstance(error, FileNotFoundError):
        try:
            target = quoted(str(path.readlink()))
        except OSError:
            return FileProblem(kind, "the file does not exist", "check the path")
        return FileProblem(
            kind,
            f"the file is a link to {target}, which does not exist",
            "download the file that the link leads to, or replace the link by it",
        )
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return FileProblem(
        kind, f"the file cannot be opened: {reason}", "make the file readable"
    )
