"""Find the line and column of values in JSON text, by their JSON Pointers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SKIP: Final = json.JSONDecoder().raw_decode


def place(text: str, offset: int) -> tuple[int, int]:
    """Turn an offset into line and column, both counted from 1 in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def locate(text: str, pointer: str) -> tuple[int, int] | None:
    """Find the line and column, from 1, of the value at a pointer in valid JSON.

    For a member of an object this is the place of its key. None where there is no
    such value, or the text is not JSON.
    """
    return locate_all(text, (pointer,)).get(pointer)


def locate_all(text: str, pointers: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Find many pointers in one pass over the text; those not there are left out."""
    root = _Wanted()
    for pointer in pointers:
        root.add(pointer)
    found: dict[str, int] = {}
    try:
        start = _after_space(text, 0)
        root.found_at(start, found)
        _visit(text, start, root, found)
    except (ValueError, IndexError):
        pass  # not JSON from here on; what stands before it is found
    return _places(text, found)


def _places(text: str, found: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Count lines once for all offsets."""
    places = {}
    line, counted = 1, 0
    for pointer, offset in sorted(found.items(), key=lambda item: item[1]):
        line += text.count("\n", counted, offset)
        counted = offset
        places[pointer] = (line, offset - text.rfind("\n", 0, offset))
    return places


class _Wanted:
    """The pointers that are looked for below one value."""

    __slots__ = ("children", "pointers")

    def __init__(self) -> None:
        self.children: dict[str, _Wanted] = {}
        self.pointers: list[str] = []

    def add(self, pointer: str) -> None:
        """File a pointer under its parts; one that is no pointer is never found."""
        if pointer and not pointer.startswith("/"):
            return
        node = self
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.children.setdefault(key, _Wanted())
        node.pointers.append(pointer)

    def found_at(self, offset: int, found: dict[str, int]) -> None:
        """Note the place of this value; of repeated keys the first one counts."""
        for pointer in self.pointers:
            found.setdefault(pointer, offset)


def _after_space(text: str, offset: int) -> int:
    space = _SPACE.match(text, offset)
    assert space is not None
    return space.end()


def _visit(text: str, start: int, wanted: _Wanted, found: dict[str, int]) -> int:
    """Look into the value at `start`, and return where it ends.

    Descends only where something is wanted, so no deeper than the pointers go; all
    else is skipped by the parser.
    """
    if wanted.children and text[start] == "{":
        return _visit_object(text, start + 1, wanted, found)
    if wanted.children and text[start] == "[":
        return _visit_array(text, start + 1, wanted, found)
    end: int = _SKIP(text, start)[1]
    return end


def _visit_object(text: str, at: int, wanted: _Wanted, found: dict[str, int]) -> int:
    at = _after_space(text, at)
    while text[at] != "}":
        key, end = _SKIP(text, at)
        value = _after_space(text, _after_space(text, end) + 1)
        child = wanted.children.get(key, _NOTHING)
        child.found_at(at, found)
        at = _next(text, _visit(text, value, child, found))
    return at + 1


def _visit_array(text: str, at: int, wanted: _Wanted, found: dict[str, int]) -> int:
    at = _after_space(text, at)
    position = 0
    while text[at] != "]":
        child = wanted.children.get(str(position), _NOTHING)
        child.found_at(at, found)
        at = _next(text, _visit(text, at, child, found))
        position += 1
    return at + 1


def _next(text: str, end: int) -> int:
    """Skip the comma after a value, if there is one."""
    at = _after_space(text, end)
    return _after_space(text, at + 1) if text[at] == "," else at


_NOTHING: Final = _Wanted()
