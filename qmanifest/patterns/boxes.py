"""Names as boxes: for each dot-separated place, the segments that may stand there.

A box means every combination of its segments. Boxes that differ in one place alone are
one box, so 24 layers of 3 matrices become a single one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

Axis: TypeAlias = "frozenset[str] | str"
"""The segments that may stand in a place, or the text of a glob for them."""
Box: TypeAlias = "tuple[Axis, ...]"

_NUMBERED: Final = re.compile(r"([^0-9]*)([0-9]{1,18})([^0-9]*)")
_SHORTEST_RUN: Final = 3
"""Fewer numbers in a row are listed one by one."""


def boxes_of(names: Iterable[str]) -> list[Box]:
    """Merge names into boxes that mean exactly those names."""
    segments: dict[str, frozenset[str]] = {}
    boxes: list[Box] = [
        tuple(
            segments.setdefault(segment, frozenset((segment,)))
            for segment in name.split(".")
        )
        for name in names
    ]
    for wanted in (_is_numeric, None):
        before = len(boxes) + 1
        while len(boxes) < before:
            before = len(boxes)
            for place in range(max(map(len, boxes), default=0)):
                boxes = _merged(boxes, place, wanted)
    return boxes


def text_of(box: Box) -> str:
    """Write a box as the text of a config entry."""
    return ".".join(map(axis_text, box))


def axis_text(axis: Axis) -> str:
    """Write what may stand in one place: one segment, or braces."""
    if isinstance(axis, str):
        return axis
    if len(axis) == 1:
        return next(iter(axis))
    return min((*_numbered(axis), _listed(sorted(axis))), key=len)


def wilder(axis: Axis, *, numbers_only: bool) -> list[str]:
    """List globs that stand for all the segments of a place and more, widest first."""
    if isinstance(axis, str) or len(axis) == 1:
        return []
    if numbers_only:
        return ["*"] if _is_numeric(axis) else []
    around = _around_number(axis)
    return ["*"] if around is None or around == ("", "") else ["*", "*".join(around)]


def halves(box: Box) -> tuple[Box, Box] | None:
    """Split a box in the place with most segments; None for a single name."""
    sizes = [0 if isinstance(axis, str) else len(axis) for axis in box]
    place = sizes.index(max(sizes))
    axis = box[place]
    if isinstance(axis, str) or len(axis) == 1:
        return None
    ordered = sorted(axis, key=lambda segment: (len(segment), segment))
    middle = len(ordered) // 2
    first, second = frozenset(ordered[:middle]), frozenset(ordered[middle:])
    return replaced(box, place, first), replaced(box, place, second)


def replaced(box: Box, place: int, axis: Axis) -> Box:
    """Put something else in one place of a box."""
    return (*box[:place], axis, *box[place + 1 :])


def _is_numeric(axis: Axis) -> bool:
    """Tell whether only numbers may stand in a place."""
    return not isinstance(axis, str) and all(s.isascii() and s.isdigit() for s in axis)


def _merged(
    boxes: Iterable[Box], place: int, wanted: Callable[[Axis], bool] | None
) -> list[Box]:
    """Merge the boxes that differ in one place alone, if what is there is wanted."""
    groups: dict[object, list[Box]] = {}
    for number, box in enumerate(boxes):
        fits = len(box) > place and (wanted is None or wanted(box[place]))
        key = (box[:place], box[place + 1 :]) if fits else number
        groups.setdefault(key, []).append(box)
    return [
        replaced(group[0], place, frozenset().union(*(box[place] for box in group)))
        if len(group) > 1
        else group[0]
        for group in groups.values()
    ]


def _listed(options: Collection[str]) -> str:
    """Write alternatives in braces; one that is a range needs them too."""
    return f"{{{','.join(options)}}}"


def _around_number(segments: Collection[str]) -> tuple[str, str] | None:
    """Find the text around the number, where the segments differ in that alone."""
    found = [_NUMBERED.fullmatch(segment) for segment in segments]
    around = {(each[1], each[3]) if each else None for each in found}
    return around.pop() if len(around) == 1 else None


def _numbered(segments: Collection[str]) -> list[str]:
    """Write segments that differ in a number alone: `w{1..3}`."""
    around = _around_number(segments)
    if around is None:
        return []
    before, after = around
    numbers = [segment[len(before) : len(segment) - len(after)] for segment in segments]
    padded = any(len(number) > 1 and number[0] == "0" for number in numbers)
    if padded and len(set(map(len, numbers))) > 1:
        return [f"{before}{_listed(sorted(numbers))}{after}"]
    return [f"{before}{_listed(_runs(sorted(numbers, key=int)))}{after}"]


def _runs(numbers: list[str]) -> list[str]:
    """Write runs of numbers in a row as ranges."""
    runs: list[list[str]] = []
    for number in numbers:
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [
        text
        for run in runs
        for text in ([f"{run[0]}..{run[-1]}"] if len(run) >= _SHORTEST_RUN else run)
    ]
