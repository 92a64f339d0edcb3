"""Which names one text means to one reader and not to another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.fused import fused_name
from qmanifest.patterns.matching import NameIndex
from qmanifest.patterns.reader import simplest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmanifest.patterns.reader import Reader
    from qmanifest.patterns.syntax import Pattern

MOST_EXAMPLES: Final = 3
"""Names that are kept of those that a reader alone matches."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two readers that one text means different names to."""

    reader: Reader
    other: Reader
    only_reader: tuple[str, ...]
    """Some of the names that `reader` alone matches, in the order of the names."""
    only_other: tuple[str, ...]
    """Some of the names that `other` alone matches."""
    number: int
    """How many names one of the two alone matches."""


class Comparison:
    """Readers compared over names that are indexed once."""

    def __init__(self, names: Iterable[str], appended: str = "") -> None:
        """Take the names of tensors, and what modules lack to be called so."""
        self._appended = appended
        self._index = NameIndex(
            name.removesuffix(appended) for name in names if name.endswith(appended)
        )

    def of(self, text: str, readers: Sequence[Reader]) -> tuple[Disagreement, ...]:
        """Compare the first reader with each of the others.

        Readers that cannot use the text as a pattern are left out.
        """
        first = readers[0] if readers else None
        ours = self._matched(text, first) if first and len(readers) > 1 else None
        if first is None or ours is None:
            return ()
        found = []
        for other in readers[1:]:
            if _meaning(text, first) == _meaning(text, other):
                continue
            theirs = self._matched(text, other)
            if theirs is not None and theirs != ours:
                found.append(self._unlike(first, other, ours, theirs))
        return tuple(found)

    def _unlike(
        self,
        reader: Reader,
        other: Reader,
        ours: frozenset[int],
        theirs: frozenset[int],
    ) -> Disagreement:
        return Disagreement(
            reader,
            other,
            self._examples(ours - theirs),
            self._examples(theirs - ours),
            len(ours ^ theirs),
        )

    def _examples(self, places: Iterable[int]) -> tuple[str, ...]:
        first = islice(sorted(places), MOST_EXAMPLES)
        return tuple(self._index.names[at] + self._appended for at in first)

    def _matched(self, text: str, reader: Reader) -> frozenset[int] | None:
        """Find the places of the names that a text means; None for an unusable one."""
        if reader.exact_wins and text in self._index.places:
            return frozenset({self._index.places[text]})
        patterns = simplest(reader.patterns(text))
        try:
            found = _places(self._index, patterns)
            if reader.fused == "either":
                index, shards = self._fused
                fused = _places(index, patterns)
                found |= {at for each in fused for at in shards[each]}
        except PatternError:
            return None
        return found

    @cached_property
    def _fused(self) -> tuple[NameIndex, list[list[int]]]:
        """The fused modules that are not stored, and the places of their shards."""
        shards: dict[str, list[int]] = {}
        for at, module in enumerate(self._index.names):
            fused = fused_name(module)
            if fused is not None and fused not in self._index.places:
                shards.setdefault(fused, []).append(at)
        return NameIndex(shards), list(shards.values())


def _meaning(text: str, reader: Reader) -> tuple[frozenset[Pattern], bool, bool]:
    """Give all that decides what a text means to a reader."""
    patterns = simplest(reader.patterns(text))
    return patterns, reader.exact_wins, reader.fused == "either"


def _places(index: NameIndex, patterns: Iterable[Pattern]) -> frozenset[int]:
    """Find the places of the names that one of several patterns matches."""
    return frozenset(at for pattern in patterns for at in index.find(pattern))


def disagreements(
    text: str, readers: Sequence[Reader], names: Iterable[str], appended: str = ""
) -> tuple[Disagreement, ...]:
    """Compare what a text means to the first reader and to each of the others.

    Use a `Comparison` for more than one text.

    Args:
        text: an entry of a list.
        readers: those that read the list.
        names: names of tensors.
        appended: what names of modules lack to be names of tensors, `.weight`; names
            that end otherwise are left out.

    """
    return Comparison(names, appended).of(text, readers)
