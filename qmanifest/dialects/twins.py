"""One quantization config in two files: `config.json` and one beside it.

Writers repeat themselves for the sake of several readers, in other words at times, and
people correct one of the two. Only keys that both have are compared.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.parsing import descend, shown
from qmanifest.findings import Defect, DefectKind, Location, Problem, json_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.dialects.base import Dialect, Place, Raw

MOST: Final = 100
"""Differences of two files that are reported one by one."""


def twins(
    dialect: Dialect[Any], place: Place, own: Raw, others: Mapping[str, Raw]
) -> tuple[Defect, ...]:
    """Compare a document with its twins in other files, key by key.

    Args:
        dialect: of the document.
        place: where it lies.
        own: the object of its file.
        others: the objects of the other config files, by name.

    """
    first = descend(own, place.keys)
    if not isinstance(first, dict):
        return ()
    found = (
        defect
        for file, raw in others.items()
        for keys in dialect.locate(raw)[:1]
        for defect in _differences(
            dialect.synonyms,
            (place.file, place.keys, first),
            (file, keys, descend(raw, keys)),
        )
    )
    return tuple(islice(found, MOST))


def _differences(
    synonyms: Mapping[str, str],
    one: tuple[str | None, tuple[str, ...], Mapping[str, Any]],
    two: tuple[str | None, tuple[str, ...], Mapping[str, Any]],
) -> Iterator[Defect]:
    """Compare what both documents say."""
    ours = {synonyms.get(key, key): key for key in one[2]}
    theirs = {synonyms.get(key, key): key for key in two[2]}
    for name in sorted(ours.keys() & theirs.keys()):
        (file, keys, document), (other, other_keys, twin) = one, two
        key, other_key = ours[name], theirs[name]
        value, other_value = document[key], twin[other_key]
        if _same(value, other_value):
            continue
        pointer = json_pointer(*keys, key)
        other_pointer = json_pointer(*other_keys, other_key)
        problem = Problem(
            f"{file}#{pointer} is {shown(value)} and {other}#{other_pointer} is "
            f"{shown(other_value)}",
            (Location(file, pointer), Location(other, other_pointer)),
            expected=value,
            actual=other_value,
            hint="make both say the same; loaders differ in which they read",
        )
        yield Defect(DefectKind.TWINS_DISAGREE, problem)


def _same(one: object, two: object) -> bool:
    """Whether two values say the same; null says nothing, lists of names any order."""
    if one is None or two is None:
        return True
    if isinstance(one, list) and isinstance(two, list):
        texts = all(isinstance(each, str) for each in (*one, *two))
        return set(one) == set(two) if texts else one == two
    if isinstance(one, str) and isinstance(two, str):
        return one.lower() == two.lower()
    return one == two and isinstance(one, bool) == isinstance(two, bool)
