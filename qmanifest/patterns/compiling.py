"""Patterns made ready to match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.patterns import glob_forms
from qmanifest.patterns.checking import MAX_NAMES, check_text
from qmanifest.patterns.clues import Clues, glob_clues, text_clues
from qmanifest.patterns.globs import parse
from qmanifest.patterns.syntax import REGEX_MARK, Pattern, Syntax

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


def compile_pattern(pattern: Pattern) -> Compiled:
    """Make a pattern ready to match.

    Raises:
        PatternError: it cannot be used; the message is the reason.

    """
    text = pattern.text
    check_text(text)
    if pattern.syntax is Syntax.EXACT:
        return Compiled(text.__eq__, names=(text,))
    if pattern.syntax is Syntax.SUBSTRING:
        return Compiled(lambda name: text in name, text_clues(text), is_quick=True)
    if pattern.syntax is Syntax.PREFIX:
        clues = text_clues(text, starts=True)
        return Compiled(lambda name: name.startswith(text), clues, is_quick=True)
    if pattern.syntax is Syntax.GLOB:
        return _compile_glob(text)
    return _compile_regex(text.removeprefix(REGEX_MARK))


def _compile_glob(text: str) -> Compiled:
    """Compile a glob; a name that is the same text is matched too."""
    glob = parse(text)
    number = glob_forms.count(glob)
    if number is not None and number <= MAX_NAMES:
        names = (*dict.fromkeys(glob_forms.expand(glob)), text)
        return Compiled(frozenset(names).__contains__, names=names)
    test = glob_forms.star_test(glob)
    if test is not None:
        return Compiled(test, glob_clues(glob), is_quick=True)
    regex = glob_forms.to_regex(glob)
    matches = _regex_test(regex)
    return Compiled(
        lambda name: name == text or matches(name), glob_clues(glob), lines=regex
    )


def _compile_regex(regex: str) -> Compiled:
    """Compile a regular expression, which must match whole names."""
    from qmanifest.patterns import regexes  # noqa: PLC0415 - few configs have any

    accepts = _regex_test(regex)
    lines = regex if regexes.works_per_line(regex) else None
    return Compiled(accepts, regexes.regex_clues(regex), lines=lines)


def _regex_test(regex: str) -> Callable[[str], bool]:
    """Build the test of whether a regular expression matches a whole name."""
    from qmanifest.patterns import regexes  # noqa: PLC0415 - few configs have any

    fullmatch = regexes.compile_program(regex).fullmatch
    return lambda name: fullmatch(name.encode(errors="surrogatepass")) is not None
