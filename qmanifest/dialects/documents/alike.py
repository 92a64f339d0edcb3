"""Read a document whose many entries are few different ones: each of those once.

The JSON reader makes one object of entries whose text is the same, so that a config of
a hundred thousand entries is read as fast as one of a dozen. Only sound documents are
read here; what is wrong with another is said of each entry that has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

if TYPE_CHECKING:
    from qmanifest.dialects.base import D

_MANY: Final = 1_000
_ALIKE: Final = 4
"""Entries that are the same object, on average, where looking for them pays."""


def read_alike(document: type[D], value: Any) -> D | None:  # noqa: ANN401 - JSON
    """Read a sound document that has many entries alike; None for any other.

    Args:
        document: its model, which says in `independent` where such entries lie.
        value: parsed JSON.

    """
    key = document.independent
    if key is None or not isinstance(value, dict):
        return None
    entries = value.get(key)
    if not isinstance(entries, dict) or len(entries) < _MANY:
        return None
    names = dict(zip(map(id, entries.values()), entries, strict=True))
    if _ALIKE * len(names) > len(entries):
        return None
    chosen = {*names.values(), max(entries, key=len), min(entries, key=len)}
    few = {name: entries[name] for name in chosen}
    try:
        read = document.model_validate({**value, key: few})
    except ValidationError:
        return None
    checked = getattr(read, key)
    made = {identity: checked[name] for identity, name in names.items()}
    each = map(made.__getitem__, map(id, entries.values()))
    return read.model_copy(update={key: dict(zip(entries, each, strict=True))})
