"""Which names a list of texts means to one reader and not to another.

Readers differ about a name where all of the list covers it for one and nothing of the
list does for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.errors import PatternError
from qmanifest.patterns.fused import fused_name
from qmanifest.patterns.matching import NameIndex
from qmanifest.patterns.reader import simplest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from qmanifest.patterns.reader import Reader
    from qmanifest.patterns.syntax import Pattern

MOST_EXAMPLES: Final = 3
"""Names that are kept of those that a reader alone matches."""
Places: TypeAlias = "frozenset[int]"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two readers that a list means different names to, because of one text."""

    text: int
    """Which text of the list it is."""
    reader: Reader
    other: Reader
    only_reader: tuple[str, ...]
    """Some of the names that `reader` alone matches, in the order of the names."""
    only_other: tuple[str, ...]
    """Some of the names that `other` alone matches."""
    number: int
    """How many names one of the two alone matches."""


class Comparison:
    """Readers compared over names that are indexed once, if at all."""

    def __init__(self, names: Iterable[str], appended: str = "") -> None:
        """Take the names of tensors, and what modules lack to be called so."""
        self._names = names
        self._appended = appended

    def of(
        self, texts: Sequence[str], readers: Sequence[Reader]
    ) -> Iterator[Disagreement]:
        """Compare the first reader with each of the others.

        A name that they differ about is told of the first text that matches it. Texts
        that a reader cannot use as patterns are left out, and so is a reader that asks
        about blocks alone, since files do not say which they are.
        """
        for other in readers[1:]:
            if not readers[0].blocks_only and not other.blocks_only:
                yield from self._pair(texts, readers[0], other)

    def _pair(
        self, texts: Sequence[str], reader: Reader, other: Reader
    ) -> Iterator[Disagreement]:
        """Compare two readers: first what all texts match, then whose fault it is."""
        if all(_meaning(text, reader) == _meaning(text, other) for text in texts):
            return
        ours, theirs = set[int](), set[int]()
        for text in texts:
            mine, its = self._both(text, reader, other)
            ours |= mine
            theirs |= its
        unlike = ours ^ theirs
        for number, text in enumerate(texts):
            if not unlike:
                return
            mine, its = self._both(text, reader, other)
            only_reader, only_other = mine & unlike, its & unlike
            if only_reader or only_other:
                yield Disagreement(
                    number,
                    reader,
                    other,
                    self._examples(only_reader),
                    self._examples(only_other),
                    len(only_reader) + len(only_other),
                )
            unlike -= only_reader | only_other

    def _examples(self, places: Iterable[int]) -> tuple[str, ...]:
        first = islice(sorted(places), MOST_EXAMPLES)
        return tuple(self._index.names[at] + self._appended for at in first)

    def _both(self, text: str, reader: Reader, other: Reader) -> tuple[Places, Places]:
        """Find what a text means to each; nothing where one of them cannot use it."""
        try:
            mine = self._matched(text, reader)
            same = _meaning(text, reader) == _meaning(text, other)
            return mine, mine if same else self._matched(text, other)
        except PatternError:
            return frozenset(), frozenset()

    def _matched(self, text: str, reader: Reader) -> Places:
        """Find the places of the names that a text means to a reader."""
        if reader.exact_wins and text in self._index.places:
            return frozenset({self._index.places[text]})
        patterns = simplest(reader.patterns(text))
        found = _places(self._index, patterns)
        if reader.fused != "either":
            return found
        index, shards = self._fused
        return found.union(*(shards[each] for each in _places(index, patterns)))

    @cached_property
    def _index(self) -> NameIndex:
        """The modules; most lists mean the same to all readers and need none."""
        end = self._appended
        return NameIndex(n.removesuffix(end) for n in self._names if n.endswith(end))

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


def _places(index: NameIndex, patterns: Iterable[Pattern]) -> Places:
    """Find the places of the names that one of several patterns matches."""
    return frozenset(at for pattern in patterns for at in index.find(pattern))


def disagreements(
    texts: Sequence[str],
    readers: Sequence[Reader],
    names: Iterable[str],
    appended: str = "",
) -> tuple[Disagreement, ...]:
    """Compare what a list means to the first reader and to each of the others.

    Args:
        texts: the entries of the list.
        readers: those that read it.
        names: names of tensors.
        appended: what names of modules lack to be names of tensors, `.weight`; names
            that end otherwise are left out.

    """
    return tuple(Comparison(names, appended).of(texts, readers))
