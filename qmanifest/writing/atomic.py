"""Files that appear whole or not at all: a reader sees the old content or the new.

The content goes to a temporary file beside the target, is forced to disk, and takes
the target's name in one step. A killed process leaves at most a temporary file; its
name starts with a dot and ends in `.tmp`, so that nothing takes it for a checkpoint.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final

from qmanifest.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_FOLDER_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP})
"""What file systems answer that cannot force a folder's entries to disk."""


@contextmanager
def atomic_file(path: Path, size: int | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the name `path` once the block ends well.

    If the block raises, the temporary file is removed and whatever `path` was stays.
    A symbolic link at `path` is replaced itself; the file it points to is not touched.

    Args:
        path: the file to create or replace; its folder must exist.
        size: bytes that are about to be written, for the message of a full disk.

    Raises:
        WriteError: the file cannot be created, forced to disk or renamed, or the
            device is full.

    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    with own_errors(path, size):
        stream = temporary.open("xb")
    try:
        with _full_device(path, size):
            yield stream
        with own_errors(path, size):
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()
            temporary.replace(path)
            sync_folder(path.parent)
    except BaseException:
        # a second failure, to flush or to remove, must not hide the first one
        with suppress(OSError):
            stream.close()
        with suppress(OSError):
            temporary.unlink()
        raise


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all; line ends stay as they are.

    Raises:
        WriteError: `text` has half of a surrogate pair, or as `atomic_file`.

    """
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise WriteError(
            f"{path.name!r} would hold half of a surrogate pair at character "
            f"{error.start}, which UTF-8 cannot say. Remove it from the source."
        ) from error
    with atomic_file(path, len(content)) as stream:
        stream.write(content)


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON, indented by two, with its keys in their order.

    Raises:
        WriteError: `value` has NaN or infinity, which JSON cannot say, or as
            `write_text`.

    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise WriteError(
            f"{path.name!r} would hold a value that JSON cannot say ({error}). "
            "Write NaN and infinity as strings."
        ) from error
    write_text(path, text + "\n")


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk, so that a rename outlives a power cut.

    Raises:
        OSError: the folder cannot be opened, or the device failed.

    """
    flag = getattr(os, "O_DIRECTORY", None)
    if flag is None:  # Windows opens no folders; its renames are journaled
        return
    descriptor = os.open(folder, os.O_RDONLY | flag)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def own_errors(path: Path, size: int | None) -> Iterator[None]:
    """Turn every system error into a `WriteError` about `path`."""
    with _full_device(path, size):
        try:
            yield
        except OSError as error:
            if error.errno in _FULL:
                raise
            raise WriteError(
                f"cannot write {str(path)!r}: {error.strerror}. "
                "Pass a folder that exists and is writable."
            ) from error


@contextmanager
def _full_device(path: Path, size: int | None) -> Iterator[None]:
    """Turn a full device into a `WriteError`; the caller's other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        needed = "" if size is None else f", which takes {size:,} bytes"
        raise WriteError(
            f"no space left for {str(path)!r}{needed}; what was there before is "
            "unchanged. Free space, or write to another device."
        ) from error
