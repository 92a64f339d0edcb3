"""Long messages made short enough for one line of a terminal, for people only."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 20_000
"""Characters that are looked at; a longer text loses its middle before anything."""
_WORD: Final = 120
"""Characters of one word: a name that is longer loses its middle."""
_LISTED: Final = 3
"""Items that stay of a long list."""
_LIST: Final = re.compile(r"'[^' ]*'(?:, '[^' ]*'){5,}")
"""Six or more quoted names in a row."""
_LONG_WORD: Final = re.compile(rf"[^ ]{{{_WORD + 1},}}")
_JOINT: Final = " [...] "
_WORDS: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyz_.,")


def shorten(text: str, limit: int) -> str:
    """Cut `text` to at most `limit` characters, in the middle and never in a number.

    Lists of names go first, then the middle of long names, then that of the text: its
    start says what was found and its end what was expected.

    >>> shorten("missing: 'a', 'b', 'c', 'd', 'e', 'f', 'g'", 40)
    "missing: 'a', 'b', 'c' and 4 more"
    """
    if len(text) <= limit:
        return text
    text = _middle_cut(text, _LONGEST)
    text = _LIST.sub(_shorter_list, text)
    text = _LONG_WORD.sub(lambda match: _middle_cut(match[0], _WORD, "..."), text)
    return _middle_cut(text, limit)


def _shorter_list(match: re.Match[str]) -> str:
    """Keep the first items of a list, and count the rest."""
    items = match[0].split(", ")
    first = ", ".join(items[:_LISTED])
    return f"{first} and {len(items) - _LISTED:,} more"


def _middle_cut(text: str, limit: int, joint: str = _JOINT) -> str:
    """Replace the middle of a text by a mark, keeping whole numbers and words."""
    if len(text) <= limit:
        return text
    room = limit - len(joint)
    head, tail = text[: room * 2 // 3], text[len(text) - room // 3 :]
    if joint == _JOINT:
        head = head[: _end_of_last_word(head)]
        tail = tail[len(tail) - _end_of_last_word(tail[::-1]) :]
    return f"{head.rstrip()}{joint}{tail.lstrip()}"


def _end_of_last_word(text: str) -> int:
    """Find where a text can be cut without cutting a word, if that is near its end."""
    end = len(text)
    while end and text[end - 1].lower() in _WORDS:
        end -= 1
    return end if end > len(text) // 2 else len(text)
