"""A reader: a library that reads the lists of a config, and how it matches names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from qmanifest.patterns.syntax import (
    GLOB_CHARACTERS,
    REGEX_MARK,
    Pattern,
    Syntax,
)

if TYPE_CHECKING:
    from collections.abc import Collection

_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
"""Characters that mean something in a regular expression."""
_PLAIN_FORMS: Final = {
    Syntax.REGEX: Syntax.EXACT,
    Syntax.RE_MATCH: Syntax.PREFIX,
    Syntax.DYNAMIC: Syntax.PREFIX,
    Syntax.RE_SEARCH: Syntax.SUBSTRING,
}
"""What an expression without such a character comes to."""
_SUBSTRINGS: Final = frozenset(
    {Syntax.EXACT, Syntax.PREFIX, Syntax.SUFFIX, Syntax.SEGMENT, Syntax.IN_BLOCK}
)
"""What matches only names that hold the text."""
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*|[A-Z]{2,}[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Reader:
    """How one library matches the texts of a list with names of modules."""

    id: str
    title: str
    how: tuple[Syntax, ...]
    """The ways to read a text; a name that one of them matches is matched."""
    source: str
    """The file and function that match, in the library's own repository."""
    marked: Syntax | None = None
    """How a text is read that starts with `re:`; None where that means nothing."""
    exact_wins: bool = False
    """Whether a text that is a module's name means that module alone."""
    first_wins: bool = False
    """Whether of several texts that match a name the first one decides."""
    blocks_only: bool = False
    """Whether it asks about the decoder's blocks alone, and keeps all else anyway."""
    fused: Literal["no", "shards", "either"] = "no"
    """Whose names it asks for where it loads modules fused: the shards', which have to
    agree, or the fused module's too."""
    classes: Literal["no", "name", "part"] = "no"
    """Whether a text may be a class: all of its name, or a part of it in any case."""

    def patterns(self, text: str) -> tuple[Pattern, ...]:
        """Read a text of a list: every way in which it may match."""
        if self.marked is not None and text.startswith(REGEX_MARK):
            return (Pattern(text, self.marked),)
        return tuple(Pattern(text, syntax) for syntax in self.how)


def simplest(patterns: Collection[Pattern]) -> frozenset[Pattern]:
    """Leave out what other patterns say too, and write the rest as plain as it gets.

    Readers whose patterns come to the same match the same names.
    """
    plain = {_plainer(pattern) for pattern in patterns}
    parts = {each.text for each in plain if each.syntax is Syntax.SUBSTRING}
    return frozenset(
        each
        for each in plain
        if each.syntax not in _SUBSTRINGS or each.text not in parts
    )


def _plainer(pattern: Pattern) -> Pattern:
    """Write a pattern without special characters as what it comes to."""
    bare = pattern.bare
    if pattern.syntax is Syntax.FNMATCH:
        plain = GLOB_CHARACTERS.isdisjoint(bare.replace("{", ""))
        return Pattern(bare, Syntax.EXACT) if plain else pattern
    if pattern.syntax in _PLAIN_FORMS and bare and _SPECIAL.isdisjoint(bare):
        return Pattern(bare, _PLAIN_FORMS[pattern.syntax])
    return pattern


def looks_like_class(text: str) -> bool:
    """Tell whether a text is written as classes of modules are: `Linear`, `FusedMoE`.

    Files do not say of which class a module is, so such a target can be judged by what
    the tensors show alone.

    >>> looks_like_class("LinearBase"), looks_like_class("model.Linear")
    (True, False)
    """
    return _CLASS.fullmatch(text) is not None
