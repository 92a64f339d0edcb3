"""How messages write counts, names and characters; the same in every reader."""

from __future__ import annotations

import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_LONGEST: Final = 160
"""Characters of a quoted text that a message shows."""
_NAMED: Final = 5
"""Names that a message lists before it counts the rest."""


def count(number: int, noun: str) -> str:
    """Write a number and its noun.

    >>> count(1, "byte"), count(1200, "byte")
    ('1 byte', '1,200 bytes')
    """
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def quoted(text: str) -> str:
    """Quote a text in ASCII-safe Python form, cut where it is long.

    >>> quoted("a")
    "'a'"
    """
    if len(text) <= _LONGEST:
        return repr(text)
    return f"{text[:_LONGEST]!r}... ({len(text):,} characters)"


def shown(value: object) -> str:
    """Show a JSON value as JSON would, cut where it is long or deep.

    >>> shown([1, "a", None, True])
    '[1, "a", null, true]'
    """
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        inside = ", ".join(shown(item) for item in value[:8] if not _nests(item))
        hidden = len(value) > 8 or any(map(_nests, value[:8]))  # noqa: PLR2004 - as above
        return f"[{inside}{', ' * bool(inside) + '...' if hidden else ''}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'"{quoted(value)[1:-1]}"' if len(value) <= _LONGEST else quoted(value)
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _nests(value: object) -> bool:
    """Whether a value holds others, which a message leaves out."""
    return isinstance(value, (dict, list)) and bool(value)


def listing(names: Collection[str]) -> str:
    """List the first names, and say how many more there are.

    >>> listing(["a", "b"])
    "'a', 'b'"
    """
    first = ", ".join(quoted(name) for name in islice(names, _NAMED))
    more = len(names) - _NAMED
    return f"{first} and {more:,} more" if more > 0 else first


def character(char: str) -> str:
    """Name a character by itself where it is plain ASCII, else by its code point.

    >>> character("x"), character(chr(0xA0))
    ("'x'", 'U+00A0 NO-BREAK SPACE')
    """
    if char.isascii() and char.isprintable() and char != " ":
        return repr(char) if char != "'" else '"\'"'
    code = ord(char)
    name = unicodedata.name(char, "") or _UNNAMED.get(code, "unnamed character")
    return f"U+{code:04X} {name}"


_UNNAMED: Final = {
    0x00: "NULL",
    0x09: "TAB",
    0x0A: "LINE FEED",
    0x0D: "CARRIAGE RETURN",
    0x1B: "ESCAPE",
    0x7F: "DELETE",
}
"""Controls that people meet; Unicode gives controls no name of their own."""
