"""What a pattern is made into, so that it can be matched with many names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.patterns.clues import Clues

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_CLUES: Final = Clues()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A pattern that is ready to match."""

    accepts: Callable[[str], bool]
    """Whether the pattern matches a name."""
    clues: Clues = _NO_CLUES
    """What every name that it matches holds."""
    names: tuple[str, ...] | None = None
    """All the names that it can match, where they are few."""
    is_quick: bool = False
    """Whether `accepts` is as quick as a search for one of the clues."""
    lines: str | None = None
    """A regular expression that finds the names among the lines of a text."""
    also: Compiled | None = None
    """What it matches besides."""
