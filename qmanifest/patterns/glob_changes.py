"""Changes of prefix or suffix for a glob, found by searches of the names.

The part that changes has no metacharacter. What stays after a prefix begins with a
whole segment, since `*.weight` alone is no likeness.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.changes import Change, akin, is_number, prefixes
from qmanifest.patterns.compiling import compile_pattern
from qmanifest.patterns.syntax import Pattern, Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from qmanifest.patterns.matching import NameIndex

_SPECIAL: Final = re.compile(r"[*?\[\]{}]")
_LOOK_AT: Final = 256
"""The most names that are looked at for one way to change a glob."""
_MAX_TRIED: Final = 64
"""The most changes of one glob that are tried."""


def find_glob_change(index: NameIndex, text: str) -> Change | None:
    """Find a change that makes a glob match one of the names, if it matches none."""
    if _found(index, text):
        return None
    for change in islice(_all(index, text), _MAX_TRIED):
        if _test(change.applied_to(text))(change.example):
            return change
    return None


def repeat_change(index: NameIndex, text: str, change: Change) -> Change | None:
    """Make a change that is known from another glob to this one, if it helps here."""
    is_there = text.startswith if change.kind == "prefix" else text.endswith
    names = _found(index, change.applied_to(text)) if is_there(change.old) else []
    if not names or _found(index, text):
        return None
    return replace(change, example=names[0])


def _all(index: NameIndex, text: str) -> Iterator[Change]:
    """Walk over possible changes, those that keep most of the text first."""
    head = _SPECIAL.split(text, maxsplit=1)[0]
    starts = [old for old in prefixes(head) if "." in head.removeprefix(old)]
    for old in starts[:1]:
        yield from _prefix(index, text, old)
    yield from _suffix(index, text)
    for old in starts[1:]:
        yield from _prefix(index, text, old)


def _prefix(index: NameIndex, text: str, old: str) -> Iterator[Change]:
    """Replace the prefix `old`."""
    rest = text.removeprefix(old)
    if old:
        for name in _found(index, rest):
            yield Change("prefix", old, "", name)
    test = _test(rest)
    for name in _found(index, f"*.{rest}"):
        for new in prefixes(name):
            if new and test(name.removeprefix(new)):
                yield Change("prefix", old, new, name)


def _suffix(index: NameIndex, text: str) -> Iterator[Change]:
    """Add, take off or replace a last segment."""
    test = _test(text)
    for name in _found(index, f"{text}.*"):
        stem, _, leaf = name.rpartition(".")
        if test(stem) and not is_number(leaf):
            yield Change("suffix", "", f".{leaf}", name)
    stem, dot, last = text.rpartition(".")
    if not dot or _SPECIAL.search(last) or is_number(last):
        return
    if not stem.endswith("*"):
        for name in _found(index, stem):
            yield Change("suffix", f".{last}", "", name)
    for name in _found(index, f"{stem}.*"):
        leaf = name.rpartition(".")[2]
        if akin(leaf, last):
            yield Change("suffix", f".{last}", f".{leaf}", name)


def _found(index: NameIndex, text: str) -> list[str]:
    """List some of the names that a glob matches."""
    try:
        places = index.find(Pattern(text, Syntax.GLOB))
    except PatternError:
        return []
    return [index.names[at] for at in places[:_LOOK_AT]]


def _test(text: str) -> Callable[[str], bool]:
    """Build the test of whether a glob matches a name."""
    try:
        return compile_pattern(Pattern(text, Syntax.GLOB)).accepts
    except PatternError:
        return lambda _: False
