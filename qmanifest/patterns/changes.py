"""What would make an entry that matches nothing match: another prefix or suffix.

Names change at their ends when a model is wrapped, converted or packed: a prefix of
whole segments comes, goes or is another one, or the last segment does. A number in
the part that changes is no change of naming but another layer, so that is not offered.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.patterns.matching import NameIndex

LOOK_AT: Final = 16
"""The most names that are looked at for one way to change an entry."""
_MAX_SEGMENTS: Final = 8
"""The most segments of a prefix that is taken off."""
_AFTER_ALL: Final = chr(0x10FFFF)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a prefix or suffix that makes an entry match a name."""

    kind: Literal["prefix", "suffix"]
    old: str
    """What the entry has there, with its dot; empty where `new` is only added."""
    new: str
    """What the name has there, with its dot; empty where `old` is only removed."""
    example: str
    """A name that the changed entry matches."""

    def applied_to(self, text: str) -> str:
        """Write an entry with the change made."""
        if self.kind == "prefix":
            return self.new + text.removeprefix(self.old)
        return text.removesuffix(self.old) + self.new


def prefixes(text: str) -> Iterator[str]:
    """Walk over the prefixes of whole segments, shortest first, up to a number."""
    yield ""
    end = 0
    for segment in text.split(".")[:-1][:_MAX_SEGMENTS]:
        if is_number(segment):
            return
        end += len(segment) + 1
        yield text[:end]


def is_number(segment: str) -> bool:
    """Tell whether a segment counts something, as layers are counted."""
    return segment.isascii() and segment.isdigit()


def holds_number(text: str) -> bool:
    """Tell whether a segment of a text is a number."""
    return any(map(is_number, text.split(".")))


def akin(leaf: str, other: str) -> bool:
    """Tell whether one last segment may stand for the other: `weight`, `qweight`."""
    return leaf != other and (leaf in other or other in leaf)


class ExactChanges:
    """Changes of exact names, found in orders of the names that are made once."""

    def __init__(self, index: NameIndex) -> None:
        self._names = index.names
        self._known = index.places

    def find(self, text: str) -> Change | None:
        """Find a change that makes `text` one of the names, if it is none."""
        if not text or text in self._known:
            return None
        return next(self._all(text), None)

    def _all(self, text: str) -> Iterator[Change]:
        """Walk over the changes, those that keep most of the text first."""
        nothing, *some = prefixes(text)
        yield from self._prefix(text, nothing)
        yield from self._suffix(text)
        for old in some:
            yield from self._prefix(text, old)

    def _prefix(self, text: str, old: str) -> Iterator[Change]:
        """Replace the prefix `old`."""
        rest = text.removeprefix(old)
        if not rest:
            return
        if old and rest in self._known:
            yield Change("prefix", old, "", rest)
        names = self._ending(f".{rest}")
        if "." not in rest and (old or len(names) != 1):
            return  # a lone last segment is no likeness
        for name in sorted(names, key=len):
            new = name.removesuffix(rest)
            if not holds_number(new):
                yield Change("prefix", old, new, name)

    def _suffix(self, text: str) -> Iterator[Change]:
        """Add, take off or replace a last segment."""
        for leaf in self._leaves.get(text, ()):
            yield Change("suffix", "", f".{leaf}", f"{text}.{leaf}")
        stem, dot, last = text.rpartition(".")
        if not dot or is_number(last):
            return
        if stem and stem in self._known:
            yield Change("suffix", f".{last}", "", stem)
        for leaf in self._leaves.get(stem, ()):
            if akin(leaf, last):
                yield Change("suffix", f".{last}", f".{leaf}", f"{stem}.{leaf}")

    def _ending(self, end: str) -> list[str]:
        """List some of the names that end with a text."""
        mirrored = end[::-1]
        first = bisect_left(self._mirrored, mirrored)
        last = bisect_left(self._mirrored, mirrored + _AFTER_ALL, lo=first)
        last = min(last, first + LOOK_AT)
        return [name[::-1] for name in self._mirrored[first:last]]

    @cached_property
    def _mirrored(self) -> list[str]:
        """The names read backwards, sorted: names of one ending stand together."""
        return sorted(name[::-1] for name in self._names)

    @cached_property
    def _leaves(self) -> dict[str, list[str]]:
        """Some last segments by what stands before them, `weight` first."""
        found: dict[str, list[str]] = {}
        for name in self._names:
            stem, dot, leaf = name.rpartition(".")
            leaves = found.setdefault(stem, []) if dot and not is_number(leaf) else None
            if leaves is not None and len(leaves) < LOOK_AT:
                leaves.insert(0 if leaf == "weight" else len(leaves), leaf)
        return found
