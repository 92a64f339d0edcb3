"""Which stored tensors are those of a component: found by path, by name, by tensors.

A config of several models does not say where they lie. In that order counts the path
that the caller gave, files or a subfolder of the component's name, and the store that
holds most of its tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from qmanifest.findings import Defect, DefectKind, Location, Problem
from qmanifest.patterns import match
from qmanifest.reading.stores import open_stores

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from qmanifest.patterns import Pattern
    from qmanifest.reading.stores import Store, Stores


class Assigned(msgspec.Struct, frozen=True):
    """Which component has which store."""

    stores: Mapping[str, Store]
    loose: tuple[Store, ...]
    defects: tuple[Defect, ...]


def assign(
    wanted: Mapping[str, Sequence[Pattern]], stores: Stores, given: Mapping[str, Path]
) -> Assigned:
    """Find the store of every component.

    Args:
        wanted: what each component's tensors are called, by its name.
        stores: what the checkpoint's folder holds.
        given: folder or file of each component that the caller placed.

    """
    unknown = tuple(_unknown(name, wanted) for name in given if name not in wanted)
    if set(wanted) == {""}:
        only = stores.merged if "" not in given else _placed(given[""])
        return Assigned({"": only} if only else {}, (), unknown)
    found: dict[str, Store] = {}
    for name in wanted:
        placed = given.get(name)
        store = stores.named(name) if placed is None else _placed(placed)
        if store is not None:
            found[name] = store
    defects = _find_by_tensors(wanted, stores, found)
    used = {store.files for store in found.values()}
    loose = tuple(s for s in stores.by_name.values() if s.files not in used)
    in_order = {name: found[name] for name in wanted if name in found}
    return Assigned(in_order, loose, (*unknown, *defects))


def _placed(path: Path) -> Store | None:
    """Open a component that the caller placed, showing its folder's name."""
    prefix = f"{path.name}/" if path.name and path.is_dir() else ""
    return open_stores(path, prefix=prefix).merged


def _find_by_tensors(
    wanted: Mapping[str, Sequence[Pattern]], stores: Stores, found: dict[str, Store]
) -> tuple[Defect, ...]:
    """Add to `found` by tensor names, as long as that gets any further."""
    while True:
        used = {store.files for store in found.values()}
        free = [s for s in stores.by_name.values() if s.files not in used]
        lost = {name: wanted[name] for name in wanted if name not in found}
        more, defects = _best_pairs(lost, free)
        found.update(more)
        if not more:
            return defects


def _best_pairs(
    wanted: Mapping[str, Sequence[Pattern]], stores: Sequence[Store]
) -> tuple[dict[str, Store], tuple[Defect, ...]]:
    """Give each component the store that holds most of its names, at least one.

    A store that suits two components best goes to the one with more names in it.
    """
    rivals: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    fitting: dict[str, list[Store]] = {}
    for name, patterns in wanted.items():
        most, fitting[name] = _best(patterns, stores)
        if len(fitting[name]) == 1:
            rivals.setdefault(fitting[name][0].files, []).append((most, name))
    found: dict[str, Store] = {}
    defects = [_ambiguous(n, fits) for n, fits in fitting.items() if len(fits) > 1]
    for claims in rivals.values():
        most = max(count for count, _ in claims)
        best = [name for count, name in claims if count == most]
        if len(best) == 1:
            found[best[0]] = fitting[best[0]][0]
        else:
            defects.append(_contested(best, fitting[best[0]][0]))
    return found, tuple(defects)


def _best(
    patterns: Sequence[Pattern], stores: Sequence[Store]
) -> tuple[int, list[Store]]:
    """Count the names that are held at most by one store, and pick those that do."""
    counts = []
    for store in stores:
        matches = match(patterns, store.index)
        counts.append(len(patterns) - len(matches.dead))
    most = max(counts, default=0)
    fits = [s for s, count in zip(stores, counts, strict=True) if count == most]
    return most, fits if most else []


def _ambiguous(name: str, stores: Sequence[Store]) -> Defect:
    files = [store.files[0] for store in stores]
    problem = Problem(
        f"component {name!r} may be in {' or '.join(map(repr, files))}: they fit "
        "equally well",
        tuple(Location(file) for file in files),
        hint=f"say which with --component {name}=PATH",
    )
    return Defect(DefectKind.NO_CONFIG, problem)


def _contested(names: Sequence[str], store: Store) -> Defect:
    file = store.files[0]
    problem = Problem(
        f"{file!r} may be component {' or '.join(map(repr, names))}: they fit "
        "equally well",
        (Location(file),),
        hint=f"say which with --component {names[0]}=PATH",
    )
    return Defect(DefectKind.NO_CONFIG, problem)


def _unknown(name: str, wanted: Collection[str]) -> Defect:
    known = ", ".join(repr(each) for each in wanted if each)
    problem = Problem(
        f"the config has no component {name!r}",
        (Location("."),),
        expected=known or None,
        actual=name,
        hint=f"name one of {known}" if known else "leave --component out",
    )
    return Defect(DefectKind.NO_CONFIG, problem)
