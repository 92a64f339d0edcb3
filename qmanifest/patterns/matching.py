"""Which names a pattern matches, for thousands of patterns and names at once.

A name index maps each dot-separated segment to the names that have it. A pattern is
tried only on the names that have the rarest segment of its literal text; what has no
such segment and needs RE2 is found in one pass over all names, joined to lines.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.syntax import MAX_TEXT_BYTES, Pattern, Syntax

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from qmanifest.patterns.clues import Clues
    from qmanifest.patterns.compiled import Compiled

_ONE_BY_ONE: Final = 4_000
"""Up to so many names are tried one by one.

It costs about as much as one pass over 100,000 names; the result is the same.
"""
_RARE: Final = 16
"""Parts of segments are looked for where this many names share a segment."""
_MANY: Final = 4
"""So many searches are worth an index of segments."""
_MAX_PIECES: Final = 8
"""The most parts of segments that are looked for."""
_MAX_HELD: Final = 1_000
"""The most parts of segments for which it is remembered which segments hold them."""


class NameIndex:
    """Names, without repeats and in their order, that patterns are looked up in."""

    def __init__(self, names: Iterable[str], *, searches: int = _MANY) -> None:
        """Take the names, and how many searches at most are to come.

        For a few it does not pay to look at the segments of all names.
        """
        self._all = dict.fromkeys(names)
        self.names = tuple(self._all)
        self._by_segments = searches >= _MANY
        self._held: dict[str, list[Sequence[int]]] = {}
        self._without: dict[str, tuple[NameIndex, list[int]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._all

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each name."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    def without(self, suffix: str) -> tuple[NameIndex, list[int]]:
        """Take a suffix off the names, and leave out the names that lack it.

        Returns:
            An index of what is left of each name, and the places of the names here.

        """
        if suffix not in self._without:
            places = [at for at, name in enumerate(self.names) if name.endswith(suffix)]
            left = (self.names[at].removesuffix(suffix) for at in places)
            self._without[suffix] = NameIndex(left), places
        return self._without[suffix]

    @cached_property
    def segments(self) -> dict[str, list[int]]:
        """The places of the names that have a segment, ascending."""
        found: dict[str, list[int]] = {}
        for at, name in enumerate(self.names):
            for segment in set(name.split(".")):
                found.setdefault(segment, []).append(at)
        return found

    def find(self, pattern: Pattern) -> Sequence[int]:
        """Find the places of the names that a pattern matches, ascending.

        Raises:
            PatternError: the pattern cannot be used.

        """
        compiled = _compiled(pattern)
        if compiled.names is not None:
            found = (self.places.get(name) for name in compiled.names)
            return sorted({at for at in found if at is not None})
        places = self._search(compiled)
        if compiled.also is not None:
            return sorted({*places, *self._search(compiled.also)})
        if pattern.syntax is not Syntax.GLOB or pattern.text not in self:
            return places
        return sorted({*places, self.places[pattern.text]})

    def touches(self, pattern: Pattern) -> bool:
        """Tell whether a pattern matches any of the names.

        Raises:
            PatternError: the pattern cannot be used.

        """
        compiled = _compiled(pattern)
        if compiled.names is not None:
            return any(name in self for name in compiled.names)
        if pattern.syntax is Syntax.GLOB and pattern.text in self:
            return True
        return any(
            each.accepts(self.names[at])
            for each in (compiled, compiled.also)
            if each is not None
            for at in self._candidates(each.clues)
        )

    def _search(self, compiled: Compiled) -> Sequence[int]:
        """Find the places of the names that a pattern accepts, by its clues."""
        names, accepts = self.names, compiled.accepts
        if compiled.is_quick and not self._by_segments:
            return [at for at, name in enumerate(names) if accepts(name)]
        candidates = self._candidates(compiled.clues)
        for text in () if compiled.is_quick else compiled.clues.texts:
            candidates = [at for at in candidates if text in names[at]]
        if compiled.lines is not None and len(candidates) > _ONE_BY_ONE:
            return self._search_lines(compiled.lines, compiled)
        return [at for at in candidates if accepts(names[at])]

    def _candidates(self, clues: Clues) -> Sequence[int]:
        """Narrow the names down by the clue that fewest names have."""
        best: list[Sequence[int]] = [range(len(self.names))]
        if not self._by_segments:
            return best[0]
        fewest = len(self.names)
        for found in self._clued(clues):
            number = sum(map(len, found))
            if number < fewest:
                best, fewest = found, number
        return best[0] if len(best) == 1 else sorted(set().union(*best))

    def _clued(self, clues: Clues) -> Iterator[list[Sequence[int]]]:
        """Walk over the clues, each as the places of the names that have it."""
        for options in clues.segments:
            yield [self.segments.get(option, ()) for option in options]
        if len(self.segments) > len(self.names) // _RARE:
            return
        pieces = {piece for text in clues.texts for piece in text.split(".")}
        for piece in sorted(pieces, key=len, reverse=True)[:_MAX_PIECES]:
            yield self._holding(piece)

    def _holding(self, piece: str) -> list[Sequence[int]]:
        """List the places of the names by the segments that hold a piece."""
        known = self._held.get(piece)
        if known is None:
            known = [at for text, at in self.segments.items() if piece in text]
            if len(self._held) < _MAX_HELD:
                self._held[piece] = known
        return known

    @cached_property
    def _lines(self) -> tuple[bytes, list[int], list[int]]:
        """All names as lines, where each line starts, and which name it is."""
        lines, starts, places, start = [], [], [], 0
        for at, name in enumerate(self.names):
            if "\n" not in name:
                line = name.encode(errors="surrogatepass")
                lines.append(line)
                starts.append(start)
                places.append(at)
                start += len(line) + 1
        return b"\n".join(lines), starts, places

    def _search_lines(self, regex: str, compiled: Compiled) -> Sequence[int]:
        """Find the names that a regular expression matches in one pass."""
        from qmanifest.patterns.regexes import (  # noqa: PLC0415 - few need it
            compile_program,
        )

        text, starts, places = self._lines
        found = {  # a set, since RE2's Python side may yield an empty match twice
            places[bisect_left(starts, match.start())]
            for match in compile_program(regex, lines=True).finditer(text)
            if starts
        }
        if len(places) < len(self.names):
            broken = (at for at, name in enumerate(self.names) if "\n" in name)
            found.update(at for at in broken if compiled.accepts(self.names[at]))
        return sorted(found)


class Matches:
    """What each of several patterns matches."""

    def __init__(self, index: NameIndex, found: Sequence[Sequence[int]]) -> None:
        self._index = index
        self._found = found

    def of(self, number: int) -> tuple[str, ...]:
        """List the names that a pattern matches, in the order of the names."""
        return tuple(map(self._index.names.__getitem__, self._found[number]))

    def claims(self, name: str) -> tuple[int, ...]:
        """List the numbers of the patterns that match a name."""
        return tuple(self._claims.get(self._index.places.get(name, -1), ()))

    @property
    def dead(self) -> tuple[int, ...]:
        """The numbers of the patterns that match nothing, unusable ones included."""
        return tuple(number for number, places in enumerate(self._found) if not places)

    @property
    def contested(self) -> tuple[str, ...]:
        """The names that two or more patterns match, in the order of the names."""
        several = (at for at, numbers in self._claims.items() if len(numbers) > 1)
        return tuple(self._index.names[at] for at in sorted(several))

    @cached_property
    def _claims(self) -> dict[int, list[int]]:
        """The patterns that match the name at each place."""
        claims: dict[int, list[int]] = {}
        for number, places in enumerate(self._found):
            for at in places:
                claims.setdefault(at, []).append(number)
        return claims


def match(
    patterns: Sequence[Pattern], names: Iterable[str], appended: Sequence[str] = ()
) -> Matches:
    """Match every pattern with every name.

    A pattern that cannot be used (`check` says why) matches nothing. A glob also
    matches the name that is the same text, since names do hold `[` and `{`.

    Args:
        patterns: the patterns.
        names: the names.
        appended: for each pattern what stands behind the text that it is matched with:
            `.weight` where patterns are about modules and names are of tensors. Names
            without it are not matched. Absent: patterns are about whole names.

    """
    searches = len({p for p in patterns if p.syntax is not Syntax.EXACT})
    index = NameIndex(names if patterns else (), searches=searches)
    known: dict[tuple[Pattern, str], Sequence[int]] = {}
    found: list[Sequence[int]] = []
    for pattern, end in zip(patterns, appended or [""] * len(patterns), strict=True):
        text = pattern.text
        if pattern.syntax is Syntax.EXACT and text.isascii():
            whole = text + end
            at = index.places.get(whole) if 0 < len(whole) <= MAX_TEXT_BYTES else None
            found.append(() if at is None else (at,))
            continue
        if (pattern, end) not in known:
            known[pattern, end] = _find(index, pattern, end)
        found.append(known[pattern, end])
    return Matches(index, found)


def _compiled(pattern: Pattern) -> Compiled:
    """Make a pattern ready to match.

    Raises:
        PatternError: it cannot be used.

    """
    from qmanifest.patterns.compiling import (  # noqa: PLC0415 - plain names need none
        compile_pattern,
    )

    return compile_pattern(pattern)


def _find(index: NameIndex, pattern: Pattern, appended: str) -> Sequence[int]:
    """Find the names of a pattern, compactly; none for an unusable one."""
    try:
        if not appended:
            return array("I", index.find(pattern))
        left, places = index.without(appended)
        return array("I", [places[at] for at in left.find(pattern)])
    except PatternError:
        return ()
