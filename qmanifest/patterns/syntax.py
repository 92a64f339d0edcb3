"""A pattern as plain data, and how the text of a config entry becomes one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REGEX_MARK: Final = "re:"
"""What an entry starts with to be a regular expression."""
GLOB_CHARACTERS: Final = frozenset("*?[{")
"""An entry that holds one of these is a glob."""
MAX_TEXT_BYTES: Final = 1_024
"""The longest pattern that is read, as long as the longest tensor name."""


class Syntax(StrEnum):
    """How a pattern's text is read."""

    EXACT = "exact"
    SUBSTRING = "substring"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    SEGMENT = "segment"
    """One of the dot-separated segments, or several of them from the start."""
    IN_BLOCK = "in-block"
    """A substring of what stands behind the first number: of the name in its block."""
    TAG = "tag"
    """All of the name, once `model`, `layers` and numbers are left out of it."""
    GLOB = "glob"
    FNMATCH = "fnmatch"
    """A glob without braces, as Python's `fnmatch` reads it."""
    REGEX = "regex"
    """A regular expression, `re:` before it, for all of the name."""
    RE_MATCH = "re-match"
    """The same for a part of the name from its start."""
    RE_SEARCH = "re-search"
    """A regular expression, nothing before it, for any part of the name."""
    DYNAMIC = "dynamic"
    """As `RE_MATCH`, with `+:`, `-:` or nothing before it."""
    BOUNDARY = "boundary"
    """A regular expression for whole segments from the start, or else a suffix."""


MARKS: Final = {
    Syntax.REGEX: (REGEX_MARK,),
    Syntax.RE_MATCH: (REGEX_MARK,),
    Syntax.DYNAMIC: ("+:", "-:"),
}
"""What may stand before a regular expression and is no part of it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of a list, with the way its text is read."""

    text: str
    """As written in the config, `re:` included."""
    syntax: Syntax

    @property
    def bare(self) -> str:
        """The text without its mark."""
        for mark in MARKS.get(self.syntax, ()):
            if self.text.startswith(mark):
                return self.text[len(mark) :]
        return self.text


def read_entry(text: str, plain: Syntax = Syntax.EXACT) -> Pattern:
    """Read a config entry; one without `re:` and metacharacters means `plain`.

    >>> read_entry("layers.*.weight")
    Pattern(text='layers.*.weight', syntax=<Syntax.GLOB: 'glob'>)
    """
    if text.startswith(REGEX_MARK):
        return Pattern(text, Syntax.REGEX)
    if not GLOB_CHARACTERS.isdisjoint(text):
        return Pattern(text, Syntax.GLOB)
    return Pattern(text, plain)
