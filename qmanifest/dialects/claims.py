"""The lines of a config that claim names: checked, expanded, and kept as a ledger."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Entry
from qmanifest.patterns import (
    Pattern,
    Syntax,
    check,
    literal_names,
    match,
    read_entry,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.dialects.base import Place
    from qmanifest.findings import Defect


class Claim(msgspec.Struct, frozen=True):
    """One line of a config, before anything was matched."""

    parts: tuple[str | int, ...]
    """Where the line is, from the document's top."""
    pattern: Pattern
    purpose: Literal["quantize", "keep"]
    unused: Severity | None = Severity.ERROR
    appended: str = ""


def expand(
    claims: Sequence[Claim], place: Place, names: Sequence[str] | None
) -> tuple[tuple[Entry, ...], tuple[Defect, ...]]:
    """Match every claim against the stored `names`, or without them as far as it goes.

    Returns:
        An entry for each claim, in order, and a defect for each unusable pattern.

    """
    patterns = [_full(claim) for claim in claims]
    defects = tuple(
        place.defect(
            DefectKind.BAD_PATTERN,
            f"pattern {claim.pattern.text!r} cannot be used: {reason}",
            *claim.parts,
            hint="write it as a glob, or as a regular expression without "
            "look-around and back-references",
        )
        for claim, pattern in zip(claims, patterns, strict=True)
        if (reason := check(pattern)) is not None
    )
    if names is None:
        matched = [literal_names(pattern) or () for pattern in patterns]
    else:
        matches = match(patterns, names)
        matched = [matches.of(number) for number in range(len(patterns))]
    entries = tuple(
        Entry(
            place.pointer(*claim.parts),
            claim.pattern,
            claim.purpose,
            found,
            claim.unused,
            claim.appended,
        )
        for claim, found in zip(claims, matched, strict=True)
    )
    return entries, defects


def _full(claim: Claim) -> Pattern:
    """Read the claim's text as the tensor name that it stands for."""
    if not claim.appended:
        return claim.pattern
    return replace(claim.pattern, text=claim.pattern.text + claim.appended)


def is_exact(entry: Entry) -> bool:
    """Whether the entry is one plain name."""
    return entry.pattern.syntax is Syntax.EXACT


def as_whole_name(pattern: Pattern) -> str:
    """Write a pattern as text that vocabularies of whole names read the same."""
    if pattern.syntax is not Syntax.SUBSTRING:
        return pattern.text
    if read_entry(pattern.text).syntax is Syntax.EXACT:
        return f"*{pattern.text}*"
    return f"re:(?s:.*{_escaped(pattern.text)}.*)"


def as_entry(name: str) -> str:
    """Write a name as text that is read as that name alone, whatever it holds."""
    pattern = read_entry(name)
    if pattern.syntax is Syntax.EXACT or literal_names(pattern) == (name,):
        return name
    return f"re:{_escaped(name)}"


def _escaped(text: str) -> str:
    """Escape what means something to RE2, which is ASCII and no letter or digit."""
    return re.sub(r"[^\w\x80-\U0010ffff]", r"\\\g<0>", text, flags=re.ASCII)
