"""Globs: `*`, `?`, `[a-z]`, `[!x]`, `{a,b}` and `{2..27}`, parsed to a small tree.

`*` and `?` cross dots. Braces hold alternatives split by commas, and an alternative
that is a range of decimal numbers stands for all of them: `{2..27}`, `{0..3,7}`, and
`{02..10}`, which pads as bash does. A pair of braces without comma or range, a brace
without partner and a bracket that is never closed are literal text. Brackets bind
tighter than braces: `{[a,b],c}` has two alternatives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ALTERNATIVES: Final = 10_000
"""The most alternatives that the braces of one glob may list, all groups together."""
MAX_DEPTH: Final = 4
"""How deep brace groups may be nested."""
_RANGE: Final = re.compile(r"([0-9]+)\.\.([0-9]+)")


class Wild(Enum):
    """A wildcard: any run of characters, or any one character."""

    RUN = "*"
    ONE = "?"


@dataclass(frozen=True, slots=True)
class Members:
    """`[a-z]` or `[!x]`: one character inside or outside of the spans."""

    negated: bool
    spans: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Range:
    """`2..27` in braces: the decimal numbers from `low` to `high`, both included."""

    low: int
    high: int
    width: int
    """Digits that every number is padded to with zeros; 0 pads none."""

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.high - self.low + 1

    def __iter__(self) -> Iterator[str]:
        return (str(n).zfill(self.width) for n in range(self.low, self.high + 1))


@dataclass(frozen=True, slots=True)
class Choice:
    """`{a,b}`: one of several globs."""

    options: tuple[Glob, ...]


Node: TypeAlias = "str | Wild | Members | Range | Choice"
Glob: TypeAlias = "tuple[Node, ...]"


@dataclass(slots=True)
class _Group:
    """A pair of braces."""

    commas: list[int] = field(default_factory=list)
    closing: int = 0
    ranges: dict[int, Range] = field(default_factory=dict)
    """The alternatives that are ranges, by the place before they start."""
    inner_depth: int = 0
    """How many groups are nested in its deepest place."""

    def close(self, text: str, opening: int, closing: int) -> bool:
        """Finish the group; False where it is none but literal text."""
        self.closing = closing
        for before, after in self.parts(opening):
            numbers = _range(text[before + 1 : after])
            if numbers is not None:
                self.ranges[before] = numbers
        return bool(self.commas or self.ranges)

    def parts(self, opening: int) -> Iterator[tuple[int, int]]:
        """Walk over the alternatives: the places before and after each."""
        edges = [opening, *self.commas, self.closing]
        return pairwise(edges)


def parse(text: str, *, braces: bool = True) -> Glob:
    """Parse a glob, in time linear in its length.

    Args:
        text: the glob.
        braces: whether `{` means something, as it does not to `fnmatch`.

    Raises:
        PatternError: braces are nested too deep or list too many alternatives.

    """
    groups = _groups(text) if braces else {}
    listed = 0
    for group in groups.values():
        listed += len(group.commas) + 1 - len(group.ranges)
        listed += sum(numbers.count for numbers in group.ranges.values())
        if group.inner_depth >= MAX_DEPTH:
            raise PatternError(f"its braces are nested deeper than {MAX_DEPTH} levels")
    if listed > MAX_ALTERNATIVES:
        raise PatternError(f"its braces list more than {MAX_ALTERNATIVES:,} texts")
    return _sequence(text, groups, 0, len(text))


def _sequence(text: str, groups: dict[int, _Group], start: int, stop: int) -> Glob:
    """Parse the part of `text` from `start` up to `stop`."""
    nodes: list[Node] = []
    at = start
    while at < stop:
        node, at = _node(text, groups, at)
        if isinstance(node, str) and nodes and isinstance(nodes[-1], str):
            nodes[-1] += node
        elif node is not Wild.RUN or nodes[-1:] != [Wild.RUN]:
            nodes.append(node)
    return tuple(nodes)


def _node(text: str, groups: dict[int, _Group], at: int) -> tuple[Node, int]:
    """Parse what starts at a place; returns it and the place after it."""
    character = text[at]
    if character in "*?":
        return Wild(character), at + 1
    if character == "[" and (closing := _bracket_end(text, at)) > 0:
        return _members(text[at + 1 : closing]), closing + 1
    group = groups.get(at)
    if group is None:
        return character, at + 1
    options = (
        (group.ranges[before],)
        if before in group.ranges
        else _sequence(text, groups, before + 1, after)
        for before, after in group.parts(at)
    )
    return Choice(tuple(options)), group.closing + 1


def _groups(text: str) -> dict[int, _Group]:
    """Find the brace groups by the place of their opening brace."""
    found: dict[int, _Group] = {}
    still_open: list[tuple[int, _Group]] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "[":
            at = max(at, _bracket_end(text, at))
        elif character == "{":
            still_open.append((at, _Group()))
        elif character == "," and still_open:
            still_open[-1][1].commas.append(at)
        elif character == "}" and still_open:
            opening, group = still_open.pop()
            depth = group.inner_depth
            if group.close(text, opening, at):
                found[opening] = group
                depth += 1
            if still_open:
                outer = still_open[-1][1]
                outer.inner_depth = max(outer.inner_depth, depth)
        at += 1
    return found


def _range(text: str) -> Range | None:
    """Read the inside of a pair of braces as a range."""
    numbers = _RANGE.fullmatch(text)
    if numbers is None:
        return None
    ends = numbers.groups()
    padded = any(len(end) > 1 and end.startswith("0") for end in ends)
    low, high = sorted(map(int, ends))
    return Range(low, high, max(map(len, ends)) if padded else 0)


def _bracket_end(text: str, opening: int) -> int:
    """Find the bracket that closes a set; -1 where none does.

    A closing bracket that comes first is a member of the set.
    """
    start = opening + 1
    start += text.startswith("!", start)
    return text.find("]", start + 1)


def _members(inside: str) -> Members:
    """Read the inside of a pair of brackets."""
    negated = inside.startswith("!")
    at = int(negated)
    spans = []
    while at < len(inside):
        is_span = inside.startswith("-", at + 1) and at + 2 < len(inside)
        last = inside[at + 2] if is_span else inside[at]
        if inside[at] <= last:  # a span that runs backwards holds nothing
            spans.append((inside[at], last))
        at += 3 if is_span else 1
    return Members(negated, tuple(spans))
