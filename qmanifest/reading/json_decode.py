"""Decode JSON strictly: what two parsers could read differently is refused.

Beyond RFC 8259's grammar these are errors: duplicate keys, NaN and infinities (also
as numbers too large for a float), lone surrogates, and anything over a limit.
"""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from qmanifest.findings import DefectKind, JsonValue
from qmanifest.reading import limits
from qmanifest.reading.json_error import JsonError, LoneSurrogateError
from qmanifest.reading.json_structure import Structure, measure
from qmanifest.reading.json_syntax import explain
from qmanifest.reading.json_tokens import (
    first_outside_strings,
    repeated_keys,
    strings,
)
from qmanifest.reading.wording import listing, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

_BOM: Final = b"\xef\xbb\xbf"
_OTHER_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_HALF_ESCAPED: Final = re.compile(r"\\u[dD][89a-fA-F]")
_LONE: Final = re.compile("[\ud800-\udfff]")


class Decoded(msgspec.Struct, frozen=True):
    """A JSON text and its value."""

    value: JsonValue
    text: str
    """Without a byte order mark."""
    structure: Structure
    has_bom: bool


def decode_text(data: bytes) -> tuple[str, bool]:
    """Decode UTF-8, and say whether a byte order mark stood before it.

    Raises:
        JsonError: not UTF-8, or nothing but white space.

    """
    has_bom = data.startswith(_BOM)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(data, error.start) from error
    if not text or text.isspace():
        what = "nothing but white space" if text else "no bytes"
        raise JsonError(
            DefectKind.UNREADABLE_JSON,
            f"the file is empty: it has {what}",
            "write or fetch the file again",
        )
    return text, has_bom


def decode(data: bytes, depth: int = limits.MAX_DEPTH) -> Decoded:
    """Decode a JSON text of UTF-8 bytes, at most `depth` levels deep.

    Raises:
        JsonError: the text is refused, with the place and the reason.

    """
    text, has_bom = decode_text(data)
    structure = measure(data, text, depth)
    value = _parse(text)
    # A repeated key leaves one member fewer than the text has colons.
    counts = (members(value) for members in _COUNTS)
    if structure.members not in counts:
        raise _repeated(text)
    if "\\u" in text and _HALF_ESCAPED.search(text):
        _refuse_lone_surrogates(text)
    return Decoded(value, text, structure, has_bom)


def _parse(text: str) -> JsonValue:
    """Run Python's parser, with the extensions that it has switched off."""
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise explain(text, error) from error
    except _NotFinite as error:
        raise _not_finite(text, str(error)) from error
    return value


def _outer_members(value: JsonValue) -> int:
    """Count the members of an object and of the objects in it: a whole header's."""
    if not isinstance(value, dict):
        return 0
    return len(value) + sum(len(v) for v in value.values() if isinstance(v, dict))


def _three_levels(value: JsonValue) -> int:
    """Count members as deep as a config has them whose entries are objects."""
    if not isinstance(value, dict):
        return 0
    objects = [inner for inner in value.values() if isinstance(inner, dict)]
    entries = (each for inner in objects for each in inner.values())
    count = sum(len(entry) for entry in entries if isinstance(entry, dict))
    return len(value) + sum(map(len, objects)) + count


def _all_members(value: JsonValue) -> int:
    """Count the members of every object, all levels down."""
    members = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        inside: Iterable[JsonValue] = ()
        if isinstance(value, dict):
            members += len(value)
            inside = value.values()
        elif isinstance(value, list):
            inside = value
        waiting += [each for each in inside if isinstance(each, (dict, list))]
    return members


_COUNTS: Final = (_outer_members, _three_levels, _all_members)
"""Cheap counts first. None can be more than there are, so one that fits is right."""


class _NotFinite(Exception):  # noqa: N818 - it only stops the parser
    """The parser met NaN, an infinity, or a number that rounds to one."""


def _refuse(literal: str) -> NoReturn:
    raise _NotFinite(literal)


def _finite(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise _NotFinite(literal)
    return number


def _not_finite(text: str, literal: str) -> JsonError:
    """Find the number that stopped the parser: the first of its kind in the text."""
    alone = re.compile(rf"(?<![0-9.eE+-]){re.escape(literal)}(?![0-9.eE+-])")
    found = first_outside_strings(text, alone)
    return JsonError(
        DefectKind.UNREADABLE_JSON,
        f"{quoted(literal)} is not a number that JSON can say",
        "write a finite number, or null",
        found.start() if found else 0,
    )


def _not_utf8(data: bytes, byte: int) -> JsonError:
    wide = data.startswith(_OTHER_BOMS)
    error = JsonError(
        DefectKind.UNREADABLE_JSON,
        f"0x{data[byte]:02X} is not UTF-8{': the text is UTF-16' if wide else ''}",
        "save the file as UTF-8",
        len(data[:byte].decode("utf-8-sig")),
    )
    error.byte = byte
    return error


def _repeated(text: str) -> JsonError:
    """Name the repeated keys of a valid text that is known to have some."""
    found = list(islice(repeated_keys(text), 1_000))
    first = found[0]
    names = list(dict.fromkeys(repeat.key for repeat in found))
    others = f"; repeated keys: {listing(names)}" if len(names) > 1 else ""
    return JsonError(
        DefectKind.DUPLICATE_KEY,
        f"key {quoted(first.key)} stands twice in one object{others}",
        "remove one of the two: readers disagree on which one counts",
        first.second,
        pointer=first.pointer,
        related=first.first,
    )


def _refuse_lone_surrogates(text: str) -> None:
    """Refuse the first string that escapes half of a surrogate pair."""
    for token in strings(text):
        if not _HALF_ESCAPED.search(token[0]):
            continue
        decoded = json.loads(token[0])
        if lone := _LONE.search(decoded):
            raise LoneSurrogateError(
                DefectKind.UNREADABLE_JSON,
                f"string {quoted(decoded)} has the lone surrogate "
                f"U+{ord(lone[0]):04X}, which is half of a character",
                "write the whole character",
                token.start(),
            )
