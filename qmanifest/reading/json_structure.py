"""Measure a JSON text before it is parsed: depth, values, digits, members.

Python's parser recurses, so nesting must be bounded before it runs, and what a parse
costs in memory is bounded by the count of values. Everything is done by whole-text
operations of `bytes`: strings are cut out, and what remains is counted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from qmanifest.findings import DefectKind
from qmanifest.reading import limits
from qmanifest.reading.json_error import JsonError
from qmanifest.reading.json_tokens import TOKEN, first_outside_strings

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 1 << 20
"""Bytes split at once; the pieces of a split weigh far more than its text."""
_NOT_BRACKETS: Final = bytes(sorted(set(range(256)) - set(b"[]{}")))
_DIGITS_ALIKE: Final = bytes(
    ord("0") if chr(byte).isdigit() and byte < ord(":") else ord(" ")
    for byte in range(256)
)


class Structure(msgspec.Struct, frozen=True):
    """What a JSON text holds outside of its strings."""

    members: int
    """Colons; in valid JSON, the members of all objects, repeated keys included."""
    has_minus: bool


def measure(data: bytes, text: str, depth: int) -> Structure:
    """Measure a JSON text, valid or not, and refuse one that is over a limit.

    Args:
        data: the text in UTF-8.
        text: the same, decoded.
        depth: arrays and objects that may stand inside one another.

    Raises:
        JsonError: too deep, too many values, or a number with too many digits.

    """
    outside = b"".join(_outside_strings(data))
    brackets = outside.translate(None, _NOT_BRACKETS)
    values = outside.count(b",") + brackets.count(b"[") + brackets.count(b"{")
    if values > limits.MAX_VALUES:
        raise JsonError(
            DefectKind.OVER_LIMIT,
            f"the JSON text has {values:,} values; "
            f"at most {limits.MAX_VALUES:,} are read",
            "check that this is the right file",
        )
    if not _is_shallow(brackets, depth):
        _refuse_depth(text, depth)
    if b"0" * (limits.MAX_DIGITS + 1) in outside.translate(_DIGITS_ALIKE):
        _refuse_digits(text)
    return Structure(members=outside.count(b":"), has_minus=b"-" in outside)


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield the text without its strings, block by block.

    Escapes go first, so that every quote left begins or ends a string. A backslash
    outside of strings is an error at which the parser stops, so what this makes of
    the text after it does not matter.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = 0
    for start in range(0, len(data), _BLOCK):
        pieces = data[start : start + _BLOCK].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) & 1


def _is_shallow(brackets: bytes, depth: int) -> bool:
    """Whether brackets are surely at most `depth` deep, balanced or not.

    A pass that removes the innermost arrays, or objects, lowers every nest by one
    level at most; so the passes that it takes bound the depth.
    """
    levels = 0
    while levels < depth:
        before = len(brackets)
        for pair in (b"[]", b"{}"):
            shorter = brackets.replace(pair, b"")
            levels += len(shorter) < len(brackets)
            brackets = shorter
        if len(brackets) >= 0.99 * before:  # done, or damaged, or many levels deep
            break
    return levels + brackets.count(b"[") + brackets.count(b"{") <= depth


def _refuse_depth(text: str, depth: int) -> None:
    """Count brackets one by one, and refuse the first that is too deep.

    Unbalanced text is left to the parser, which stops where this does.
    """
    closers: list[str] = []
    for token in TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            closers.append("]" if mark == "[" else "}")
            if len(closers) > depth:
                raise JsonError(
                    DefectKind.OVER_LIMIT,
                    f"arrays and objects stand more than {depth} deep in one another",
                    "check that this is the right file",
                    token.start(),
                )
        elif mark in "]}" and (not closers or closers.pop() != mark):
            return


def _refuse_digits(text: str) -> None:
    long_number = re.compile(f"[0-9]{{{limits.MAX_DIGITS + 1},}}")
    if match := first_outside_strings(text, long_number):
        raise JsonError(
            DefectKind.OVER_LIMIT,
            f"a number of {len(match[0]):,} digits; "
            f"at most {limits.MAX_DIGITS:,} are read",
            "write a number of a sensible size",
            match.start(),
        )
