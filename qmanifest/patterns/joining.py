"""Boxes made wider and fewer, as long as they mean none of the other names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.boxes import Axis, Box, replaced, text_of, wilder
from qmanifest.patterns.syntax import read_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.patterns.matching import NameIndex

_MAX_WIDENED: Final = 2_000
"""The most boxes that are widened: so many have no short form anyway."""
_MAX_JOINED: Final = 100
"""The most boxes that are joined, since each is tried with each."""
_MAX_UNLIKE: Final = 2
"""In how many places boxes may differ that are joined place by place."""


@dataclass(frozen=True, slots=True)
class Joiner:
    """Widens and joins boxes."""

    others: NameIndex
    """The names that no box may mean."""
    numbers_only: bool
    """Whether `*` is put for numbers alone where there was no `*`."""

    def shorten(self, boxes: list[Box]) -> list[Box]:
        """Widen boxes, and join those that are then alike."""
        if len(boxes) <= _MAX_WIDENED:
            boxes = list(dict.fromkeys(map(self._widest, boxes)))
        return self._joined(boxes) if len(boxes) <= _MAX_JOINED else boxes

    def _is_exact(self, box: Box) -> bool:
        """Tell whether a box can be written and means none of the other names."""
        try:
            return not self.others.touches(read_entry(text_of(box)))
        except PatternError:
            return False

    def _widest(self, box: Box) -> Box:
        """Put `*` in each place where it stays exact, and one for two in a row."""
        for place, axis in enumerate(box):
            for wider in wilder(axis, numbers_only=self.numbers_only):
                candidate = replaced(box, place, wider)
                if self._is_exact(candidate):
                    box = candidate
                    break
        place = 1
        while place < len(box):
            shorter = (*box[:place], *box[place + 1 :])
            twice = box[place - 1] == box[place] == "*"
            if twice and self._is_exact(shorter):
                box = shorter
            else:
                place += 1
        return box

    def _joined(self, boxes: list[Box]) -> list[Box]:
        """Join boxes while one pattern can stand for two of them."""
        waiting, done = boxes[::-1], list[Box]()
        while waiting:
            box = waiting.pop()
            for other in sorted(done, key=lambda each: -sum(_common(box, each))):
                both = next(filter(self._is_exact, _joins(box, other)), None)
                if both is not None:
                    done.remove(other)
                    waiting.append(self._widest(both))
                    break
            else:
                done.append(box)
        return done


def _joins(box: Box, other: Box) -> Iterator[Box]:
    """Walk over boxes that stand for two boxes, and maybe more."""
    unlike = sum(a != b for a, b in zip(box, other, strict=False))
    if len(box) == len(other) and unlike <= _MAX_UNLIKE:
        yield tuple(map(_union, box, other))
    start, end = _common(box, other)
    first, last = box[:start], box[len(box) - end :]
    if any(axis != "*" for axis in first + last):
        yield (*first, "*", *last)


def _union(axis: Axis, other: Axis) -> Axis:
    """Find what stands for both; a glob is not taken apart."""
    if axis == other:
        return axis
    return "*" if isinstance(axis, str) or isinstance(other, str) else axis | other


def _common(box: Box, other: Box) -> tuple[int, int]:
    """Count the places that are the same from the start and from the end.

    At least one place of each box is left between.
    """
    most = min(len(box), len(other)) - 1
    start = 0
    while start < most and box[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and box[-1 - end] == other[-1 - end]:
        end += 1
    return start, end
