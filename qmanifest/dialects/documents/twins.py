"""One quantization config in two files: `config.json` and one beside it.

Writers repeat themselves for the sake of several readers, in other words at times, and
people correct one of the two. Only keys that both have are compared.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qmanifest.dialects import dialect_named
from qmanifest.dialects.documents.parsing import descend, shown
from qmanifest.findings import (
    Defect,
    DefectKind,
    Location,
    Problem,
    Severity,
    json_pointer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.dialects.base import Dialect, Keys, Place, Raw

MOST: Final = 100
"""Differences of two files that are reported one by one."""
LABELS: Final = frozenset(
    (
        *("producer", "meta", "version", "dataset", "tokenizer"),
        *("model_name_or_path", "model_file_base_name", "damp_percent"),
        *(
            "damp_auto_increment",
            "true_sequential",
            "static_groups",
            "mse",
            "batch_size",
        ),
    )
)
"""Keys that say how a checkpoint came about, which no reader of weights needs."""
CACHES: Final = {"8 float": "fp8", "8 int": "int8", "4 float": "nvfp4"}
"""Short names of a cache's scheme, by bits and type."""


class _Twin(NamedTuple):
    """A document, and where it lies."""

    file: str | None
    keys: Keys
    document: Mapping[str, Any]
    dialect: Dialect[Any]

    def named(self) -> dict[str, str]:
        """Give its keys by the names that all files have in common."""
        synonyms = self.dialect.synonyms
        return {synonyms.get(key, key): key for key in self.document}


def twins(
    dialect: Dialect[Any], place: Place, own: Raw, others: Mapping[str, Raw]
) -> tuple[Defect, ...]:
    """Compare a document with its twins in other files, key by key.

    Files of other dialects are no twins, but for those that the dialect is akin to.

    Args:
        dialect: of the document.
        place: where it lies.
        own: the object of its file.
        others: the objects of the other config files, by name.

    """
    document = descend(own, place.keys)
    if not isinstance(document, dict):
        return ()
    first = _Twin(place.file, place.keys, document, dialect)
    found = (
        defect
        for file, raw in others.items()
        for twin in _twins(dialect, file, raw)
        for defect in _differences(first, twin)
    )
    return tuple(islice(found, MOST))


def _twins(dialect: Dialect[Any], file: str, raw: Raw) -> Iterator[_Twin]:
    """Find the document of a file that says the same, if there is one."""
    for each in (dialect, *map(dialect_named, dialect.akin)):
        for keys in each.locate(raw)[:1]:
            document = descend(raw, keys)
            if isinstance(document, dict):
                yield _Twin(file, keys, document, each)
            return


def _differences(one: _Twin, two: _Twin) -> Iterator[Defect]:
    """Compare what both documents say."""
    ours, theirs = one.named(), two.named()
    for name in sorted(ours.keys() & theirs.keys()):
        key, other_key = ours[name], theirs[name]
        value, other = one.document[key], two.document[other_key]
        if _same(value, other):
            continue
        at = Location(one.file, json_pointer(*one.keys, key))
        other_at = Location(two.file, json_pointer(*two.keys, other_key))
        problem = Problem(
            f"{at.file}#{at.pointer} is {shown(value)} and "
            f"{other_at.file}#{other_at.pointer} is {shown(other)}",
            (at, other_at),
            expected=value,
            actual=other,
            hint="make both say the same; loaders differ in which they read",
            severity=Severity.NOTE if name in LABELS else None,
        )
        yield Defect(DefectKind.TWINS_DISAGREE, problem)


def _same(one: object, two: object) -> bool:
    """Whether two values say the same; null says nothing, lists of names any order."""
    one, two = _short(one), _short(two)
    if one is None or two is None:
        return True
    if isinstance(one, list) and isinstance(two, list):
        texts = all(isinstance(each, str) for each in (*one, *two))
        return set(one) == set(two) if texts else one == two
    return one == two and isinstance(one, bool) == isinstance(two, bool)


def _short(value: object) -> object:
    """Write a text in lower case, and a cache's scheme by its short name."""
    if isinstance(value, dict) and {"num_bits", "type"} <= value.keys():
        return CACHES.get(f"{value['num_bits']} {value['type']}", value)
    return value.lower() if isinstance(value, str) else value
