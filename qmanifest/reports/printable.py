"""The one place that makes untrusted text fit for a person's screen.

Names, keys and paths come from files that a stranger made. Written as they are, they
could move the cursor, hide or reorder what stands beside them, or start a line of
their own. Everything that any output shows to people goes through `printable` once.
"""

from __future__ import annotations

import re
from typing import Final

_SUSPECT: Final = re.compile(r"[^ -~]")
_INVISIBLE: Final = re.compile(
    "[\u0300-\u036f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f"
    "\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Unicode calls printable and that show as nothing by themselves.

Accents as characters of their own are among them: two names can differ in that alone.
"""
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: str) -> str:
    r"""Write controls, bidi marks, unseen characters and half surrogates as escapes.

    The result is one line. Backslashes stay as they are, so that what `repr` escaped
    is not escaped twice.

    >>> printable("a\x1b[31m\u202e\n")
    'a\\x1b[31m\\u202e\\n'
    """
    return _SUSPECT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    """Write one character as people can see it."""
    char = match[0]
    if char.isprintable() and not _INVISIBLE.match(char):
        return char
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100:  # noqa: PLR2004 - what two hexadecimal digits hold
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - four digits
