"""The name that is spelled most like a text, fast among 100,000 names.

Each segment is corrected by itself, and only names that share the corrected segments
are compared letter by letter.
"""

from __future__ import annotations

from difflib import get_close_matches
from heapq import nlargest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from qmanifest.patterns.matching import NameIndex

_CUTOFF: Final = 0.6
"""The least likeness, as `difflib` counts it."""
_COMPARED: Final = 24
"""The most names, or segments, that a text is compared with letter by letter."""
_MAX_LENGTH: Final = 256
"""The longest text that is compared letter by letter."""
_MAX_WORK: Final = 5_000_000
"""The most texts that one speller looks at, a few seconds' worth."""
_COMPARISON: Final = 100
"""How many looks a comparison letter by letter counts for."""


class Speller:
    """Spelling among many names."""

    def __init__(self, index: NameIndex) -> None:
        self._index = index
        self._corrections: dict[str, str | None] = {}
        self._work_left = _MAX_WORK

    def nearest(self, text: str) -> str | None:
        """Find the name that is spelled most like `text`; None where none is close.

        After much work only a name whose segments all have a known correction is
        found, so that a config of nothing but dead entries stays cheap.
        """
        segments = [self._corrected(segment) for segment in text.split(".")]
        corrected = ".".join(segment or "" for segment in segments)
        if corrected in self._index.places:
            return corrected
        return self._closest(text, self._sharing(segments))

    def _corrected(self, segment: str) -> str | None:
        """Find the segment of a name that is spelled most like a segment."""
        known = self._index.segments
        if segment in known:
            return segment
        if segment not in self._corrections:
            self._corrections[segment] = self._closest(segment, known)
        return self._corrections[segment]

    def _sharing(self, segments: list[str | None]) -> Collection[str]:
        """List names that share as many of the segments as possible, rarest first."""
        names = self._index.names
        if len(names) <= _COMPARED or self._work_left <= 0:
            return names
        found = self._index.segments
        rarest, *others = sorted(
            (segment for segment in dict.fromkeys(segments) if segment),
            key=lambda segment: len(found[segment]),
        ) or [""]
        shared = [names[at] for at in found.get(rarest, ())]
        for segment in others:
            inner = f".{segment}."
            shared = [name for name in shared if inner in f".{name}."] or shared
        self._work_left -= len(segments) * len(shared)
        return shared

    def _closest(self, text: str, options: Collection[str]) -> str | None:
        """Find the text that is spelled most like `text` among those of like length."""
        if len(text) > _MAX_LENGTH or self._work_left <= 0:
            return None
        sizes = ((each, len(each), len(text)) for each in options)
        like = [each for each, a, b in sizes if 2 * min(a, b) >= _CUTOFF * (a + b)]
        pairs = {text[at : at + 2] for at in range(len(text) - 1)}
        like = nlargest(_COMPARED, like, key=lambda each: sum(p in each for p in pairs))
        self._work_left -= len(options) + _COMPARISON * len(like)
        return next(iter(get_close_matches(text, like, n=1, cutoff=_CUTOFF)), None)
