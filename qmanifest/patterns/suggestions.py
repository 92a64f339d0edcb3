"""What an entry that matches nothing may have meant."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from qmanifest.patterns.matching import NameIndex
from qmanifest.patterns.syntax import Pattern, Syntax

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qmanifest.patterns.changes import Change, ExactChanges
    from qmanifest.patterns.spelling import Speller

_MAX_GLOBS: Final = 200
"""The most globs that are searched for; each costs several searches of all names."""


class Suggester:
    """Suggestions out of many names, which are indexed once."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names
        self._globs_left = _MAX_GLOBS
        self._latest: Change | None = None

    @cached_property
    def _index(self) -> NameIndex:
        """The names; most suggesters are never asked for any."""
        return NameIndex(self._names)

    @cached_property
    def _exact(self) -> ExactChanges:
        from qmanifest.patterns.changes import (  # noqa: PLC0415 - seldom asked
            ExactChanges,
        )

        return ExactChanges(self._index)

    def near(self, pattern: Pattern) -> Change | None:
        """Find a change of prefix or suffix that makes a dead pattern match a name.

        Only exact names and globs have one. After some hundred globs only the latest
        change is tried again, so that a config of nothing but dead globs stays cheap.
        """
        if pattern.syntax is Syntax.EXACT:
            return self._exact.find(pattern.text)
        if pattern.syntax is not Syntax.GLOB:
            return None
        from qmanifest.patterns.glob_changes import (  # noqa: PLC0415 - seldom asked
            find_glob_change,
            repeat_change,
        )

        if self._globs_left == 0:
            known = self._latest
            return known and repeat_change(self._index, pattern.text, known)
        self._globs_left -= 1
        change = find_glob_change(self._index, pattern.text)
        self._latest = change or self._latest
        return change

    def nearest(self, text: str) -> str | None:
        """Find the name that is spelled most like a text; None where none is close."""
        return self._speller.nearest(text)

    @cached_property
    def _speller(self) -> Speller:
        from qmanifest.patterns.spelling import Speller  # noqa: PLC0415 - seldom asked

        return Speller(self._index)


def near(pattern: Pattern, names: Iterable[str]) -> Change | None:
    """Find a change of prefix or suffix that makes a dead pattern match a name.

    Use a `Suggester` to ask more than once.
    """
    return Suggester(names).near(pattern)


def nearest(text: str, names: Iterable[str]) -> str | None:
    """Find the name that is spelled most like a text; None where none is close.

    Use a `Suggester` to ask more than once.
    """
    return Suggester(names).nearest(text)
