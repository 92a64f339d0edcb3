"""Names to match against: of a checkpoint, an index file, or a plain list."""

from __future__ import annotations

from pathlib import Path

from qmanifest.cli.opening import opened
from qmanifest.cli.values import UsageError, require


def holds_tensors(path: Path) -> bool:
    """Tell whether a path is to be opened as a checkpoint."""
    return path.is_dir() or path.suffix == ".safetensors"


def read_names(path: Path) -> tuple[str, ...]:
    """Read the names that a config can talk about.

    Args:
        path: a checkpoint, an index file, or a text file with one name a line.

    Raises:
        UsageError: the file cannot be read, or holds no name.

    """
    require(path)
    if holds_tensors(path):
        stores = opened(path).all_stores
        found = [name for store in stores for name in store.evidence.logical]
    else:
        found = _listed(path)
    if not found:
        raise UsageError(f"{str(path)!r} holds no names. Check the path.")
    return tuple(dict.fromkeys(found))


def _listed(path: Path) -> list[str]:
    """Read the names of an index file, or of a text file."""
    from qmanifest.reading.files import FileProblem, read_whole
    from qmanifest.reading.index_file import read_index
    from qmanifest.reading.limits import MAX_INDEX

    if path.suffix == ".json":
        return list(read_index(path, path.name).weight_map)
    try:
        text = read_whole(path, MAX_INDEX).decode("utf-8-sig")
    except FileProblem as problem:
        raise UsageError(f"{str(path)!r}: {problem}. Check the path.") from problem
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is no UTF-8 text. Check the path.") from error
    return [line.strip() for line in text.split("\n") if line.strip()]
