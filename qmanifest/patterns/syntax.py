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
    GLOB = "glob"
    REGEX = "regex"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of a list, with the way its text is read."""

    text: str
    """As written in the config, `re:` included."""
    syntax: Syntax


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
