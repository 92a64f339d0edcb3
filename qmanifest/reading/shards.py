"""The safetensors files of a folder, grouped into the models that they make up.

Files belong together by name: `NAME.safetensors`, `NAME-00001-of-00003.safetensors`
and the index `NAME.safetensors.index.json` are the set `NAME`. Whatever an index
names belongs to its set too. What is missing is a fact here, and judged by the rules.
"""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from qmanifest.findings import Defect, DefectKind, Location, Problem
from qmanifest.reading.files import is_inside
from qmanifest.reading.index_file import IndexFile, read_index
from qmanifest.reading.safetensors_header import Header, read_header
from qmanifest.reading.shard_names import EXTENSION, INDEX_EXTENSION, split_name
from qmanifest.tensors import TensorIndex

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class ShardSet(msgspec.Struct, frozen=True, dict=True):
    """The shards that together hold one model."""

    name: str
    """What the shards' names have in common."""
    root: Path
    """The folder that the shards lie in."""
    prefix: str
    """The folder's own path relative to the checkpoint, empty or ending in `/`."""
    headers: tuple[Header, ...]
    """One for every file that was opened, in name order."""
    index_file: IndexFile | None = None
    defects: tuple[Defect, ...] = ()
    """Of the set itself; headers and index file have their own."""
    refused: tuple[str, ...] = ()
    """Present files that lead out of the checkpoint, and were not opened."""

    @cached_property
    def index(self) -> TensorIndex:
        """The tensors of all readable headers, in name order of the files."""
        return index_of(self.headers)

    @property
    def files(self) -> tuple[str, ...]:
        """The present files that were opened, relative to the checkpoint."""
        return tuple(header.file for header in self.headers)

    @property
    def missing(self) -> tuple[str, ...]:
        """Shards that the index names and that are absent, relative to the checkpoint.

        Leaves out names that are unsafe to look for.
        """
        if self.index_file is None:
            return ()
        named = (f"{self.prefix}{shard}" for shard in self.index_file.shards)
        present = {*self.files, *self.refused}
        return tuple(file for file in named if file not in present)

    @property
    def numbering(self) -> tuple[tuple[str, int, int], ...]:
        """File, number and count of every shard whose name has them."""
        numbered = ((file, split_name(file)[1]) for file in self.files)
        return tuple((file, *number) for file, number in numbered if number)

    @property
    def complete(self) -> bool:
        """Whether every tensor of the model is surely in `index`."""
        unsafe = self.index_file is not None and self.index_file.unsafe
        return (
            all(header.readable for header in self.headers)
            and not (self.missing or self.refused or unsafe)
            and self._numbers_complete()
        )

    def _numbers_complete(self) -> bool:
        """Whether the numbers go from 1 to their count, where nothing else tells."""
        if self.index_file is not None and self.index_file.readable:
            return True
        counts = {count for _, _, count in self.numbering}
        found = {number for _, number, _ in self.numbering}
        return not counts or found >= set(
            range(1, min(max(counts), len(found) + 1) + 1)
        )


def index_of(headers: Iterable[Header]) -> TensorIndex:
    """Collect the tensors of all readable headers, in their order."""
    readable = (header.tensors for header in headers if header.readable)
    return TensorIndex(chain.from_iterable(readable))


class Folder(msgspec.Struct, frozen=True):
    """The shard sets of one folder, by name."""

    root: Path
    sets: tuple[ShardSet, ...]
    defects: tuple[Defect, ...] = ()
    """Of the folder itself: it cannot be listed."""


def list_folder(root: Path, prefix: str = "") -> Folder:
    """Read the headers of all safetensors files at the top level of a folder.

    Hidden files, other extensions and other folders are left alone.

    Args:
        root: the folder.
        prefix: the folder's path relative to the checkpoint, such as `emb/`.

    """
    try:
        found = sorted(path.name for path in root.iterdir())
    except OSError as error:
        return Folder(root, (), (_unlisted(root, prefix, error),))
    names = [name for name in found if not name.startswith(".")]
    reader = _FolderReader(root, prefix)
    indexes = {
        name.removesuffix(INDEX_EXTENSION): reader.read_index(name)
        for name in names
        if name.endswith(INDEX_EXTENSION)
    }
    files = [name for name in names if name.endswith(EXTENSION)]
    groups = sorted(_group(files, indexes, reader).items())
    sets = (reader.read_set(name, group, indexes.get(name)) for name, group in groups)
    return Folder(root, tuple(sets))


def open_file(path: Path) -> ShardSet:
    """Read the header of one file that the caller named, wherever it links to."""
    header = read_header(path, path.name)
    return ShardSet(split_name(path.name)[0], path.parent, "", (header,))


def _group(
    files: Iterable[str], indexes: dict[str, IndexFile], reader: _FolderReader
) -> dict[str, set[str]]:
    """Group files into sets: first by what an index names, then by their own name."""
    groups: dict[str, set[str]] = defaultdict(set)
    for name, index_file in indexes.items():
        groups[name].update(filter(reader.is_present, index_file.shards))
    claimed = set().union(*groups.values())
    for file in files:
        name = split_name(file)[0]
        if file not in claimed:
            groups[name].add(file)
    return groups


def _unlisted(root: Path, prefix: str, error: OSError) -> Defect:
    problem = Problem(
        f"the folder cannot be listed: {error.strerror or error}",
        (Location(file=prefix.rstrip("/") or root.name),),
        hint="check the path and its permissions",
    )
    return Defect(DefectKind.NOT_SAFETENSORS, problem)


class _FolderReader:
    """Reads files of one folder, each at most once, and none outside the checkpoint."""

    def __init__(self, root: Path, prefix: str) -> None:
        self.root = root
        self.prefix = prefix
        self.checkpoint = root
        for _ in range(prefix.count("/")):
            self.checkpoint = self.checkpoint.parent
        self._headers: dict[str, Header] = {}
        self._unsafe: set[str] = set()

    def is_present(self, file: str) -> bool:
        """Whether there is anything of that name, a dangling link included."""
        return os.path.lexists(self.root / file)

    def read_index(self, file: str) -> IndexFile:
        """Read an index file; what it says of a shard is not said of the file again."""
        index = read_index(self.root / file, self.prefix + file, self.checkpoint)
        self._unsafe |= index.unsafe
        return index

    def read_set(
        self, name: str, files: set[str], index_file: IndexFile | None
    ) -> ShardSet:
        """Read the headers of one set's files."""
        inside = {f for f in files if is_inside(self.checkpoint, self.root / f)}
        refused = sorted(set(files) - inside)
        return ShardSet(
            name,
            self.root,
            self.prefix,
            tuple(self._read_header(file) for file in sorted(inside)),
            index_file,
            tuple(self._refusal(f) for f in refused if f not in self._unsafe),
            tuple(self.prefix + file for file in refused),
        )

    def _read_header(self, file: str) -> Header:
        if file not in self._headers:
            self._headers[file] = read_header(self.root / file, self.prefix + file)
        return self._headers[file]

    def _refusal(self, file: str) -> Defect:
        problem = Problem(
            "the file is a link that leads out of the checkpoint's folder; "
            "it was not opened",
            (Location(file=self.prefix + file),),
            hint="replace the link by the file itself",
        )
        return Defect(DefectKind.UNSAFE_PATH, problem)
