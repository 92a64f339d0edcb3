"""Patterns made ready to match, and the reasons why some cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns import glob_forms, regexes
from qmanifest.patterns.clues import Clues, glob_clues, text_clues
from qmanifest.patterns.globs import parse
from qmanifest.patterns.syntax import (
    MAX_TEXT_BYTES,
    REGEX_MARK,
    Pattern,
    Syntax,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NAMES: Final = 10_000
"""The most names that a glob is expanded to."""
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
    lines: str | None = None
    """A regular expression that finds the names among the lines of a text."""


def compile_pattern(pattern: Pattern) -> Compiled:
    """Make a pattern ready to match.

    Raises:
        PatternError: it cannot be used; the message is the reason.

    """
    text = pattern.text
    _check_text(text)
    if pattern.syntax is Syntax.EXACT:
        return Compiled(text.__eq__, names=(text,))
    if pattern.syntax is Syntax.SUBSTRING:
        return Compiled(lambda name: text in name, text_clues(text))
    if pattern.syntax is Syntax.PREFIX:
        clues = text_clues(text, starts=True)
        return Compiled(lambda name: name.startswith(text), clues)
    if pattern.syntax is Syntax.GLOB:
        return _compile_glob(text)
    return _compile_regex(text.removeprefix(REGEX_MARK))


def check(pattern: Pattern) -> str | None:
    """Say why a pattern cannot be used; None where it can."""
    try:
        if pattern.syntax is Syntax.EXACT:  # nothing to compile, of many thousands
            _check_text(pattern.text)
        else:
            compile_pattern(pattern)
    except PatternError as error:
        return str(error)
    return None


def literal_names(pattern: Pattern, limit: int = MAX_NAMES) -> tuple[str, ...] | None:
    """List all the names that a pattern can mean, without a look at any checkpoint.

    Args:
        pattern: any pattern.
        limit: the most names that are listed.

    Returns:
        The names, without repeats. None where there is no end to them, as with a
        wildcard, or where they are more than `limit`. Empty where the pattern cannot
        be used. A glob's own text is left out, though it is matched as a name too.

    """
    if check(pattern) is not None:
        return ()
    if pattern.syntax is Syntax.EXACT:
        return (pattern.text,)
    if pattern.syntax is not Syntax.GLOB:
        return None
    glob = parse(pattern.text)
    number = glob_forms.count(glob)
    if number is None or number > limit:
        return None
    return tuple(dict.fromkeys(glob_forms.expand(glob)))


def _check_text(text: str) -> None:
    """Refuse what can be no pattern of any syntax."""
    if text in {"", REGEX_MARK}:
        raise PatternError("it is empty")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise PatternError("it holds half of a surrogate pair") from None
    if size > MAX_TEXT_BYTES:
        raise PatternError(f"it has {size:,} bytes, more than {MAX_TEXT_BYTES:,}")


def _compile_glob(text: str) -> Compiled:
    """Compile a glob; a name that is the same text is matched too."""
    glob = parse(text)
    number = glob_forms.count(glob)
    if number is not None and number <= MAX_NAMES:
        names = (*dict.fromkeys(glob_forms.expand(glob)), text)
        return Compiled(frozenset(names).__contains__, names=names)
    test = glob_forms.star_test(glob)
    if test is not None:
        return Compiled(test, glob_clues(glob))
    regex = glob_forms.to_regex(glob)
    matches = _regex_test(regex)
    return Compiled(
        lambda name: name == text or matches(name), glob_clues(glob), lines=regex
    )


def _compile_regex(regex: str) -> Compiled:
    """Compile a regular expression, which must match whole names."""
    accepts = _regex_test(regex)
    lines = regex if regexes.works_per_line(regex) else None
    return Compiled(accepts, regexes.regex_clues(regex), lines=lines)


def _regex_test(regex: str) -> Callable[[str], bool]:
    """Build the test of whether a regular expression matches a whole name."""
    fullmatch = regexes.compile_program(regex).fullmatch
    return lambda name: fullmatch(name.encode(errors="surrogatepass")) is not None
