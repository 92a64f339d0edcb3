"""What is found: a place, a fact about it, and the fact once a rule has judged it.

Nothing here knows a file format. Reading makes `Defect`s, rules make `Problem`s, and
only the rule runner (`qmanifest.rules.base.Rule.run`) turns either into a `Finding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

JsonValue: TypeAlias = (
    "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
)
"""Anything that JSON can say."""


class Severity(StrEnum):
    """How bad a finding is, in the words of SARIF."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def reaches(self, least: Severity) -> bool:
        """Whether this severity is `least` or worse."""
        order = list(Severity)
        return order.index(self) <= order.index(least)


def json_pointer(*parts: str | int) -> str:
    """Build the RFC 6901 pointer to a value; no parts point to the whole document.

    >>> json_pointer("tensors", "a/b", "shape", 0)
    '/tensors/a~1b/shape/0'
    """
    return "".join(["/" + _escaped(str(part)) for part in parts])


def _escaped(part: str) -> str:
    """Escape a part of a pointer; almost none needs it."""
    if "~" in part or "/" in part:
        return part.replace("~", "~0").replace("/", "~1")
    return part


def json_pointers(parent: str, parts: Sequence[str]) -> list[str]:
    """Build the pointers to many members of the value that `parent` points to."""
    prefix = f"{parent}/"
    together = "".join(parts)
    if "~" in together or "/" in together:
        return [prefix + _escaped(part) for part in parts]
    return list(map(prefix.__add__, parts))


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a checkpoint: as much of it as is known."""

    file: str | None = None
    """Path relative to the checkpoint, with `/` between folders."""
    pointer: str | None = None
    """JSON Pointer into `file`; the empty string is the whole document."""
    tensor: str | None = None
    byte_range: tuple[int, int] | None = None
    """First byte and the byte after the last one, counted from the file's start."""
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One fact about the checkpoint that contradicts its config or the format."""

    message: str
    at: tuple[Location, ...] = ()
    """The first location is the primary one; the rest are related."""
    expected: JsonValue = None
    actual: JsonValue = None
    hint: str | None = None
    """What the user can do, as one instruction. Never repeats `message`."""
    severity: Severity | None = None
    """Set where this fact weighs differently from its rule's usual one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem with its rule's code and severity. Only `Rule.run` makes one."""

    code: str
    severity: Severity
    message: str
    hint: str | None = None
    at: tuple[Location, ...] = ()
    expected: JsonValue = None
    actual: JsonValue = None


class DefectKind(StrEnum):
    """The sorts of damage that reading meets; one rule reports each."""

    NOT_SAFETENSORS = "not-safetensors"
    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing-bytes"
    BAD_HEADER = "bad-header"
    DUPLICATE_KEY = "duplicate-key"
    BAD_ENTRY = "bad-entry"
    OVERLAP_OR_GAP = "overlap-or-gap"
    UNSAFE_PATH = "unsafe-path"
    UNREADABLE_JSON = "unreadable-json"
    OVER_LIMIT = "over-limit"
    UNKNOWN_KEY = "unknown-key"
    INVALID_VALUE = "invalid-value"
    MISSING_KEY = "missing-key"
    GROUP_DIVISION = "group-division"
    BAD_PATTERN = "bad-pattern"
    NO_CONFIG = "no-config"
    CONTRADICTION = "contradiction"
    IMPOSSIBLE_SCHEME = "impossible-scheme"
    PROVENANCE = "provenance"
    FOREIGN_SYNTAX = "foreign-syntax"
    LABEL = "label"
    TWINS_DISAGREE = "twins-disagree"


@dataclass(frozen=True, slots=True)
class Defect:
    """Damage met while reading: its kind, and the fact to report."""

    kind: DefectKind
    problem: Problem
