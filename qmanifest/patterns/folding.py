"""The fewest patterns that mean exactly a set of names.

Names are merged to boxes, boxes are widened by `*` where no other name would match, and
boxes that then differ little are joined. Each step is taken only if it stays exact, so
the result is, though it need not be the shortest there is. Braces hold whole segments
or the number in a segment: patterns stay readable.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.boxes import Box, boxes_of, halves, text_of
from qmanifest.patterns.checking import check
from qmanifest.patterns.joining import Joiner
from qmanifest.patterns.matching import NameIndex, match
from qmanifest.patterns.syntax import REGEX_MARK, Syntax, read_entry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_RESERVED: Final = frozenset("*?[]{},")
"""Characters that mean something in a glob, at least inside of braces."""
_PLANS: Final = ((False,), (True, False))
"""Whether only numbers become `*`, step by step; the shorter result is taken."""


def fold(selected: Collection[str], universe: Collection[str]) -> tuple[str, ...]:
    """Write a set of names as few patterns, as texts for a config.

    Args:
        selected: the names to match; they count as part of `universe`.
        universe: all the names there are.

    Returns:
        Texts that `read_entry` reads as patterns, sorted. Together they match all of
        `selected` and nothing else of `universe`. A name with metacharacters stands
        for itself.

    Raises:
        PatternError: no pattern matches a name, since it is too long.

    """
    chosen = sorted(set(selected))
    others = NameIndex(sorted(set(universe).difference(chosen)))
    plain = [name for name in chosen if _is_plain(name)]
    special = [_verbatim(name, others) for name in chosen if not _is_plain(name)]
    boxes = boxes_of(plain)
    results = [
        _needed([*_written(boxes, plan, others), *special], chosen) for plan in _PLANS
    ]
    if not others.names and len(chosen) > 1:
        results = [("*",)]
    texts = min(results, key=lambda texts: (len(texts), sum(map(len, texts))))
    _verify(texts, chosen, others)
    return texts


def _is_plain(name: str) -> bool:
    """Tell whether a name can be a part of a glob as it is."""
    return bool(name) and not name.startswith(REGEX_MARK) and _RESERVED.isdisjoint(name)


def _verbatim(name: str, others: NameIndex) -> str:
    """Write a name that has metacharacters, or looks like a regular expression."""
    pattern = read_entry(name)
    usable = pattern.syntax is not Syntax.REGEX and check(pattern) is None
    if usable and not others.touches(pattern):
        return name
    import re2  # noqa: PLC0415 - few models have such names

    return f"{REGEX_MARK}{re2.escape(name) or '()'}"


def _written(
    boxes: list[Box], plan: Iterable[bool], others: NameIndex
) -> Iterator[str]:
    """Write boxes as few texts."""
    for numbers_only in plan:
        boxes = Joiner(others, numbers_only).shorten(boxes)
    for box in boxes:
        yield from _texts(box, others)


def _texts(box: Box, others: NameIndex) -> Iterator[str]:
    """Write a box, in parts where its text breaks a limit or is a name left out."""
    text = text_of(box)
    unfit = text in others.places or check(read_entry(text)) is not None
    parts = halves(box) if unfit else None
    if parts is None:
        yield text
    else:
        for part in parts:
            yield from _texts(part, others)


def _needed(texts: Iterable[str], chosen: list[str]) -> tuple[str, ...]:
    """Leave out the texts whose names the others match too."""
    texts = sorted(set(texts))
    matches = match([read_entry(text) for text in texts], chosen)
    names = [matches.of(number) for number in range(len(texts))]
    claims = Counter(name for each in names for name in each)
    needed = set(range(len(texts)))
    for number in sorted(needed, key=lambda n: (len(names[n]), -len(texts[n]))):
        if all(claims[name] > 1 for name in names[number]):
            needed.remove(number)
            claims.subtract(names[number])
    return tuple(text for number, text in enumerate(texts) if number in needed)


def _verify(texts: Iterable[str], chosen: list[str], others: NameIndex) -> None:
    """Expand the patterns again.

    Raises:
        PatternError: they do not mean exactly the chosen names.

    """
    patterns = [read_entry(text) for text in texts]
    matches = match(patterns, [*chosen, *others.names])
    found = {name for number in range(len(patterns)) for name in matches.of(number)}
    wrong = found.symmetric_difference(chosen)
    if wrong:
        raise PatternError(f"no pattern stands for {min(wrong)!r} alone")
