"""The lines of a config that claim names: checked, expanded, and kept as a ledger."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

import msgspec

from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Entry
from qmanifest.patterns import (
    READERS,
    Pattern,
    Syntax,
    check,
    literal_names,
    match,
    read_entry,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    """What names of modules lack to be names of tensors; no pattern is about it."""
    reader: str = ""
    """The reader whose meaning of the text counts; empty: it is the pattern's."""
    also_read: tuple[str, ...] = ()
    """The other readers of the same line."""

    def ways(self) -> tuple[tuple[Pattern, str], ...]:
        """Give every pattern that the line stands for, and what to append to each."""
        patterns = (
            READERS[self.reader].patterns(self.pattern.text)
            if self.reader
            else (self.pattern,)
        )
        return tuple(
            (replace(each, text=each.text + self.appended), "")
            if each.syntax is Syntax.EXACT and self.appended
            else (each, self.appended)
            for each in patterns
        )


def expand(
    claims: Sequence[Claim], place: Place, names: Sequence[str] | None
) -> tuple[tuple[Entry, ...], tuple[Defect, ...]]:
    """Match every claim against the stored `names`, or without them as far as it goes.

    Returns:
        An entry for each claim, in order, and a defect for each unusable pattern.

    """
    ways = [claim.ways() for claim in claims]
    defects = tuple(
        place.defect(
            DefectKind.BAD_PATTERN,
            f"pattern {claim.pattern.text!r} cannot be used: {reason}",
            *claim.parts,
            hint="write it as a glob, or as a regular expression without "
            "look-around and back-references",
        )
        for claim, patterns in zip(claims, ways, strict=True)
        if (reason := next(filter(None, (check(each) for each, _ in patterns)), None))
    )
    entries = tuple(
        Entry(
            place.pointer(*claim.parts),
            claim.pattern,
            claim.purpose,
            found,
            claim.unused,
            claim.appended,
            claim.reader,
            claim.also_read,
        )
        for claim, found in zip(claims, _matched(claims, ways, names), strict=True)
    )
    return entries, defects


def _matched(
    claims: Sequence[Claim],
    ways: Sequence[tuple[tuple[Pattern, str], ...]],
    names: Sequence[str] | None,
) -> Iterator[tuple[str, ...]]:
    """Walk over the names that each claim is about."""
    flat = [way for patterns in ways for way in patterns]
    if names is None:
        listed = [
            tuple(name + end for name in literal_names(pattern) or ())
            for pattern, end in flat
        ]
    else:
        matches = match([p for p, _ in flat], names, [end for _, end in flat])
        listed = [matches.of(number) for number in range(len(flat))]
    found = iter(listed)
    for claim, patterns in zip(claims, ways, strict=True):
        yield _union(claim, [next(found) for _ in patterns])


def _union(claim: Claim, found: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Put what several patterns of a line match together, without repeats."""
    first = found[0]
    if len(found) == 1 or (first and READERS[claim.reader].exact_wins):
        return first
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def is_exact(entry: Entry) -> bool:
    """Whether the entry is one plain name."""
    return entry.pattern.syntax is Syntax.EXACT


def as_entry(name: str) -> str:
    """Write a name as text that is read as that name alone, whatever it holds."""
    pattern = read_entry(name)
    if pattern.syntax is Syntax.EXACT or literal_names(pattern) == (name,):
        return name
    return f"re:{escaped(name)}"


def escaped(text: str) -> str:
    """Escape what means something to RE2, which is ASCII and no letter or digit."""
    return re.sub(r"[^\w\x80-\U0010ffff]", r"\\\g<0>", text, flags=re.ASCII)
