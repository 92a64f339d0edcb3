"""Stores: the shards that together hold one model.

A folder can hold several models side by side (`emb.safetensors`, `rr.safetensors`) or
in subfolders; which of them a config means is found by `qmanifest.reading.components`.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from qmanifest.evidence import Evidence
from qmanifest.reading.shards import index_of, list_folder, open_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from qmanifest.findings import Defect
    from qmanifest.reading.safetensors_header import Header
    from qmanifest.reading.shards import ShardSet
    from qmanifest.tensors import TensorIndex


class Store(msgspec.Struct, frozen=True, dict=True):
    """The shards of one model, whatever their files are called."""

    name: str
    root: Path
    """Folder that the shards' `file` is relative to."""
    sets: tuple[ShardSet, ...]

    @cached_property
    def headers(self) -> tuple[Header, ...]:
        """Every shard's header, in the order of the file names."""
        return tuple(header for each in self.sets for header in each.headers)

    @cached_property
    def index(self) -> TensorIndex:
        """The stored tensors by name."""
        if len(self.sets) == 1:
            return self.sets[0].index
        return index_of(self.headers)

    @cached_property
    def evidence(self) -> Evidence:
        """What the stored tensors show by themselves."""
        return self.index.derived(Evidence)

    @property
    def complete(self) -> bool:
        """Whether every header that ought to be there was read."""
        return all(each.complete for each in self.sets)

    @property
    def files(self) -> tuple[str, ...]:
        """The shards' paths."""
        return tuple(header.file for header in self.headers)

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What is wrong with the shards and their index files."""
        found = [defect for each in self.sets for defect in each.defects]
        for each in self.sets:
            found += [defect for header in each.headers for defect in header.defects]
            found += each.index_file.defects if each.index_file else ()
        return tuple(found)


class Stores(msgspec.Struct, frozen=True, dict=True):
    """Everything that one path holds: stores by the names of their files."""

    root: Path
    by_name: Mapping[str, Store]
    defects: tuple[Defect, ...] = ()

    @cached_property
    def merged(self) -> Store | None:
        """All of the folder's shards as one model; None where there are none."""
        sets = tuple(each for store in self.by_name.values() for each in store.sets)
        return Store("", self.root, sets) if sets else None

    def named(self, name: str) -> Store | None:
        """Find the shards named after a component, or its subfolder."""
        if name in self.by_name:
            return self.by_name[name]
        subfolder = self.root / name
        plain = name and "/" not in name and not name.startswith(".")
        if not plain or not os.path.isdir(subfolder):  # noqa: PTH112 - `Path.is_dir` raises where a name is too long
            return None
        return open_stores(subfolder, prefix=f"{name}/").merged


def open_stores(path: Path, prefix: str = "") -> Stores:
    """Read the headers of a folder's shards, or of one shard.

    Args:
        path: a folder, or one `.safetensors` file.
        prefix: what to put before file names: the folder's own place, with `/`.

    """
    if not path.is_dir():
        root, only = path.parent, open_file(path)
        return Stores(root, {only.name: Store(only.name, root, (only,))})
    folder = list_folder(path, prefix=prefix)
    root = path
    for _ in range(prefix.count("/")):
        root = root.parent
    named = {each.name: Store(each.name, root, (each,)) for each in folder.sets}
    return Stores(root, named, folder.defects)
