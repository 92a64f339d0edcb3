"""The tokens of JSON text, for finding places in it. `json` itself does the parsing.

Used where something is already known to be wrong, so that speed matters less than
that every search is linear: a string that never ends is one token up to the end.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import msgspec

from qmanifest.findings import json_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""A whole string; one that never ends takes the rest of the text."""

TOKEN: Final = re.compile(rf"{STRING}|[\[\]{{}},]", re.DOTALL)
"""Strings and punctuation; numbers and literals lie between two matches."""


class RepeatedKey(msgspec.Struct, frozen=True):
    """A key that one object has twice."""

    key: str
    pointer: str
    first: int
    """Offset of the first occurrence, in characters."""
    second: int


def first_outside_strings(text: str, wanted: re.Pattern[str]) -> re.Match[str] | None:
    """Find the first match of a pattern that is not in a string."""
    either = re.compile(f"{STRING}|(?P<wanted>{wanted.pattern})", re.DOTALL)
    return next((m for m in either.finditer(text) if m["wanted"] is not None), None)


def strings(text: str) -> Iterator[re.Match[str]]:
    """Yield every string of a text, keys included."""
    return (token for token in TOKEN.finditer(text) if token[0][0] == '"')


def repeated_keys(text: str) -> Iterator[RepeatedKey]:
    """Yield the repeated keys of a valid JSON text, in the order of the text.

    Keys are compared as they decode, so an escape hides nothing.
    """
    path: list[_Open] = []
    inner = _Open()
    for token in TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            path.append(inner)
            inner = _Open(keys={} if mark == "{" else None)
        elif mark in "}]":
            inner = path.pop()
        elif mark == ",":
            inner.next_value()
        elif inner.awaits_key:
            offset = token.start()
            first = inner.enter(_decoded(mark), offset)
            if first != offset:
                pointer = json_pointer(*(place.part for place in (*path[1:], inner)))
                yield RepeatedKey(str(inner.part), pointer, first, offset)


def _decoded(string: str) -> str:
    """Decode a JSON string, quotes included."""
    return str(json.loads(string)) if "\\" in string else string[1:-1]


class _Open:
    """An object or array that the search is inside of, or the whole text."""

    __slots__ = ("awaits_key", "keys", "part")

    def __init__(self, keys: dict[str, int] | None = None) -> None:
        self.keys = keys
        """Offset of every key met, in an object."""
        self.part: str | int = 0
        """Key or position of the value that the search is at."""
        self.awaits_key = keys is not None

    def next_value(self) -> None:
        """Pass a comma."""
        if self.keys is not None:
            self.awaits_key = True
        elif isinstance(self.part, int):
            self.part += 1

    def enter(self, key: str, offset: int) -> int:
        """Enter a member, and return the offset of its key's first occurrence."""
        self.part, self.awaits_key = key, False
        return offset if self.keys is None else self.keys.setdefault(key, offset)
