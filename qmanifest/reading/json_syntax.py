"""Say what is wrong at the place where Python's JSON parser stopped.

Python's own message is used only to tell what the parser was looking for; the text
around the place tells what was found and what people usually mean by it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from qmanifest.findings import DefectKind
from qmanifest.reading.json_error import JsonError
from qmanifest.reading.wording import character

if TYPE_CHECKING:
    from json import JSONDecodeError

_EXPECTED: Final = (
    ("Expecting property name", "a key in double quotes or '}'"),
    ("Expecting ':'", "':' after the key"),
    ("Expecting ','", "',' or the end of the array or object"),
    ("Expecting value", "a value"),
    ("Extra data", "the end of the file"),
    ("Invalid control character", "an escape such as \\n"),
)
"""Beginnings of Python's messages, and what each was looking for."""

_ESCAPES: Final = r"\" \\ \/ \b \f \n \r \t \u0000"
_QUOTES: Final = "'\u2018\u2019\u201c\u201d\u00ab\u00bb`"
_LITERALS: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "NaN": "null",
    "nan": "null",
    "inf": "a number",
    "undefined": "null",
}
_WORD: Final = re.compile(r"[^\W\d]\w*")
_DANGLING_COMMA: Final = re.compile(r",[ \t\r\n]*[}\]]")


def explain(text: str, error: JSONDecodeError) -> JsonError:
    """Turn the parser's error into one that names what was found and expected."""
    offset = error.pos
    comma = _trailing_comma(text, offset)
    if comma is not None:
        return _error(
            "a comma stands before the closing bracket", "remove the comma", comma
        )
    if error.msg.startswith("Unterminated"):
        return _error(
            "a string begins here and never ends",
            "end the string, or fetch the file again if it was cut",
            offset,
        )
    if error.msg.startswith("Invalid \\"):
        return _bad_escape(text, offset)
    expected = _expected(error)
    if offset >= len(text):
        return _error(
            f"the text ends where {expected} should follow",
            "fetch or write the file again: its end is missing",
            len(text),
        )
    found = character(text[offset])
    return _error(
        f"found {found}, expected {expected}", _hint(text, offset, error), offset
    )


def _expected(error: JSONDecodeError) -> str:
    wants = (what for start, what in _EXPECTED if error.msg.startswith(start))
    return next(wants, "JSON")


def _bad_escape(text: str, offset: int) -> JsonError:
    """Name an escape that JSON does not have; `offset` is in it or at its start."""
    start = text.rfind("\\", 0, offset + 1)
    following = text[start + 1 : start + 2]
    found = "a \\u without four hexadecimal digits"
    if following != "u":
        found = f"a backslash before {character(following)}" if following else "\\"
    return _error(
        f"found {found}, expected one of {_ESCAPES}",
        "write \\\\ for a backslash",
        start,
    )


def _error(message: str, hint: str, offset: int) -> JsonError:
    return JsonError(DefectKind.UNREADABLE_JSON, message, hint, offset)


def _trailing_comma(text: str, offset: int) -> int | None:
    """Find the comma that a closing bracket at `offset` makes one too many."""
    before = text[:offset].rstrip(" \t\r\n") if text[offset : offset + 1] else ""
    if text[offset : offset + 1] in ("}", "]") and before.endswith(","):
        return len(before) - 1
    # Since Python 3.13 the parser stops at the comma itself.
    return offset if _DANGLING_COMMA.match(text, offset) else None


def _hint(text: str, offset: int, error: JSONDecodeError) -> str:
    """Guess what was meant: by the character first, then by what was expected."""
    char = text[offset]
    word = _WORD.match(text, offset)
    guesses = (
        (
            text.startswith(("//", "/*", "#"), offset),
            "remove the comment: JSON has none",
        ),
        (char in _QUOTES, 'use straight double quotes: "'),
        (char == "\0", "fill up with spaces, or fetch the file again if it was cut"),
        (not char.isascii() or not char.isprintable(), "remove this character"),
        (word and word[0] in _LITERALS, _literal(word)),
        (error.msg.startswith("Expecting property"), "put the key in double quotes"),
        (error.msg.startswith("Expecting ','"), "put a comma before it, or remove it"),
        (error.msg.startswith("Extra data"), "keep one JSON value in the file"),
    )
    return next((hint for fits, hint in guesses if fits), "correct the text here")


def _literal(word: re.Match[str] | None) -> str:
    """Translate a literal of another language."""
    meant = _LITERALS.get(word[0]) if word else None
    return f"write {meant} in its place"
