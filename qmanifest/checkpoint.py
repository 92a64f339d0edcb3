"""A checkpoint opened: the promise, the facts, and what went wrong while reading them.

`open_checkpoint` reads the config and every header, never a tensor's data, and turns
bad content into defects. It raises only when there is nothing to open at all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from qmanifest.dialects import dialect_named
from qmanifest.dialects.promise import Promise, read_promise
from qmanifest.patterns import Suggester
from qmanifest.reading import limits
from qmanifest.reading.collector import collector_paused
from qmanifest.reading.components import Assigned, assign
from qmanifest.reading.config_file import (
    MODEL_CONFIG,
    ConfigFile,
    find_configs,
    read_config,
)
from qmanifest.reading.stores import open_stores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from qmanifest.dialects.base import Dialect, Document
    from qmanifest.findings import Defect, DefectKind, Problem
    from qmanifest.manifest import Component, Manifest
    from qmanifest.patterns import Change
    from qmanifest.reading.stores import Store, Stores
    from qmanifest.tensors import TensorInfo


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint promises and what is stored, side by side."""

    root: Path
    """Folder that every `file` of a location is relative to."""
    config: ConfigFile | None = None
    model_config: Mapping[str, Any] = field(default_factory=dict)
    """The model's own `config.json`, empty where there is none."""
    component_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The `config.json` in a component's own folder, by component name."""
    dialect: Dialect[Any] | None = None
    document: Document | None = None
    manifest: Manifest | None = None
    stores: Mapping[str, Store] = field(default_factory=dict)
    """The stored tensors of each component that was found, by component name."""
    loose: tuple[Store, ...] = ()
    """Stored tensors that belong to no component."""
    base: Mapping[str, Store] | None = None
    """The 16-bit original of each component, where an original was given."""
    defects: tuple[Defect, ...] = ()
    config_only: bool = False
    """Whether the config alone is to be judged."""

    def defects_of(self, *kinds: DefectKind) -> Iterator[Problem]:
        """Give the problems of the defects of some kinds."""
        return (each.problem for each in self.defects if each.kind in kinds)

    @property
    def config_name(self) -> str | None:
        """The config file, as locations name it."""
        return None if self.config is None else self.config.file

    @property
    def all_stores(self) -> tuple[Store, ...]:
        """Every group of shards, of a component or loose."""
        return (*self.stores.values(), *self.loose)

    @property
    def complete(self) -> bool:
        """Whether every header that ought to be there was read."""
        return all(store.complete for store in self.all_stores)

    def found(self) -> Iterator[tuple[Component, Store]]:
        """Walk over the components whose tensors were found."""
        for component in self.manifest.components if self.manifest else ():
            if component.name in self.stores:
                yield component, self.stores[component.name]

    @cached_property
    def renames(self) -> Mapping[tuple[str, str], Change]:
        """Say which dead entries would match under another prefix or suffix.

        Keys are the component's name and the entry's pointer.
        """
        changes = {}
        for component, store in self.found():
            dead = [entry for entry in component.entries if not entry.matches]
            if not dead:
                continue
            claimed = {name for entry in component.entries for name in entry.matches}
            for appended in {entry.appended for entry in dead}:
                names = [
                    name.removesuffix(appended)
                    for name in store.evidence.logical
                    if name.endswith(appended) and name not in claimed
                ]
                suggest = Suggester(names)
                for entry in dead:
                    if entry.appended == appended:
                        change = suggest.near(entry.pattern)
                        if change is not None:
                            changes[component.name, entry.pointer] = change
        return changes

    def original(self, component: str, name: str) -> TensorInfo | None:
        """Find a tensor of a component's 16-bit original."""
        store = (self.base or {}).get(component)
        return None if store is None else store.index.get(name)


def open_checkpoint(
    path: Path,
    *,
    config: Path | None = None,
    components: Mapping[str, Path] | None = None,
    base: Path | None = None,
    dialect: str | None = None,
) -> Checkpoint:
    """Open a folder of shards, or one shard, with the config that describes it.

    Args:
        path: the folder, or one `.safetensors` file.
        config: the config file, where it is not in the folder under a usual name.
        components: folder or file of each component that is elsewhere.
        base: the 16-bit original, a witness of logical shapes.
        dialect: force the config's dialect instead of recognising it.

    Raises:
        FileNotFoundError: there is nothing at one of the paths.
        UnknownDialectError: `dialect` names none.

    """
    for each in (path, config, base, *(components or {}).values()):
        if each is not None:
            each.lstat()
    with collector_paused():
        return _opened(path, config, components or {}, base, dialect)


def _opened(
    path: Path,
    config: Path | None,
    components: Mapping[str, Path],
    base: Path | None,
    dialect: str | None,
) -> Checkpoint:
    """Open what is there, as `open_checkpoint` says."""
    forced = dialect_named(dialect) if dialect else None
    stores = open_stores(path)
    own = _own_config(stores.root)
    file = own.quantization if config is None else read_config(config, config.name)
    promise = _promise(file, forced)
    assigned = _assign(promise, stores, components)
    indexes = {name: store.index for name, store in assigned.stores.items()}
    lowered = promise.lower(indexes)
    shards = (*assigned.stores.values(), *assigned.loose)
    return Checkpoint(
        root=stores.root,
        config=file,
        model_config=own.model,
        component_configs=_component_configs(stores.root, assigned.stores),
        dialect=promise.dialect,
        document=promise.document,
        manifest=lowered.manifest if lowered else None,
        stores=assigned.stores,
        loose=assigned.loose,
        base=None if base is None else _assign(promise, open_stores(base), {}).stores,
        defects=(
            *stores.defects,
            *promise.defects,
            *_twins(promise, file, own),
            *assigned.defects,
            *(lowered.defects if lowered else ()),
            *(defect for store in shards for defect in store.defects),
        ),
    )


def open_config(path: Path, *, dialect: str | None = None) -> Checkpoint:
    """Open a config alone, to judge what it says without any weights.

    Raises:
        FileNotFoundError: there is no such file.
        UnknownDialectError: `dialect` names none.

    """
    path.lstat()
    with collector_paused():
        file = read_config(path, path.name)
        promise = _promise(file, dialect_named(dialect) if dialect else None)
        lowered = promise.lower(None)
    return Checkpoint(
        root=path.parent,
        config=file,
        dialect=promise.dialect,
        document=promise.document,
        manifest=lowered.manifest if lowered else None,
        defects=(*promise.defects, *(lowered.defects if lowered else ())),
        config_only=True,
    )


class _OwnConfig(msgspec.Struct, frozen=True):
    """The configs in a checkpoint's own folder."""

    quantization: ConfigFile | None
    model: Mapping[str, Any]
    files: Mapping[str, ConfigFile]
    """All of them, by name."""

    def others(self, file: ConfigFile) -> dict[str, Mapping[str, Any]]:
        """Give the objects of the config files beside `file`, by name."""
        found = {name: each.object for name, each in self.files.items()}
        return {n: o for n, o in found.items() if o is not None and n != file.file}


def _own_config(root: Path) -> _OwnConfig:
    """Find the config that counts and what the model says of itself."""
    names = find_configs(root)
    files = {name: read_config(root / name, name) for name in names}
    model = files.get(MODEL_CONFIG)
    own = (model.object if model is not None else None) or {}
    for name in names:
        file = files[name]
        if name != MODEL_CONFIG or file.holds_block or file.defects:
            return _OwnConfig(file, own, files)
    return _OwnConfig(None, own, files)


def _component_configs(
    root: Path, stores: Mapping[str, Store]
) -> dict[str, Mapping[str, Any]]:
    """Read what the models say of themselves that lie in folders of their own."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, store in stores.items():
        folder = store.sets[0].root
        if folder != root and os.path.lexists(folder / MODEL_CONFIG):
            file = read_config(folder / MODEL_CONFIG, MODEL_CONFIG)
            found[name] = file.object or {}
    return found


def _promise(file: ConfigFile | None, forced: Dialect[Any] | None) -> Promise:
    """Read the promise of a config file, as far as it can be read."""
    if file is None:
        return Promise()
    if file.object is None:
        return Promise(defects=file.defects)
    found = read_promise(
        file.file,
        file.object,
        block=file.block,
        forced=forced,
        most_patterns=limits.MAX_PATTERNS,
    )
    return replace(found, defects=(*file.defects, *found.defects))


def _twins(
    promise: Promise, file: ConfigFile | None, own: _OwnConfig
) -> tuple[Defect, ...]:
    """Compare the document with its twins in the folder's other config files."""
    if file is None or file.object is None or promise.dialect is None:
        return ()
    others = own.others(file)
    if not others:
        return ()
    from qmanifest.dialects.documents.twins import (  # noqa: PLC0415 - most have a single config
        twins,
    )

    return twins(promise.dialect, promise.place, file.object, others)


def _assign(promise: Promise, stores: Stores, given: Mapping[str, Path]) -> Assigned:
    """Find the stores of the components that the document names."""
    if promise.document is None:
        merged = stores.merged
        return Assigned({}, (merged,) if merged else (), ())
    wanted = {each.name: each.patterns for each in promise.components}
    return assign(wanted, stores, given)
