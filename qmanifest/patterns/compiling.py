"""Patterns made ready to match, and the reasons why some cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns import glob_forms
from qmanifest.patterns.anchors import ANCHORED, full_test
from qmanifest.patterns.clues import glob_clues
from qmanifest.patterns.compiled import Compiled
from qmanifest.patterns.globs import parse
from qmanifest.patterns.plain import PLAIN
from qmanifest.patterns.syntax import (
    MAX_TEXT_BYTES,
    REGEX_MARK,
    Pattern,
    Syntax,
)

if TYPE_CHECKING:
    from qmanifest.patterns.globs import Glob

MAX_NAMES: Final = 10_000
"""The most names that a glob is expanded to."""
_GLOBS: Final = frozenset({Syntax.GLOB, Syntax.FNMATCH})


def compile_pattern(pattern: Pattern) -> Compiled:
    """Make a pattern ready to match.

    Raises:
        PatternError: it cannot be used; the message is the reason.

    """
    _check_text(pattern)
    if pattern.syntax in PLAIN:
        return PLAIN[pattern.syntax](pattern.text)
    if pattern.syntax in ANCHORED:
        return ANCHORED[pattern.syntax](pattern.bare)
    return _compile_glob(pattern)


def check(pattern: Pattern) -> str | None:
    """Say why a pattern cannot be used; None where it can."""
    try:
        if pattern.syntax in PLAIN:  # nothing to compile, of many thousands
            _check_text(pattern)
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
    if pattern.syntax not in _GLOBS:
        return None
    glob = _parsed(pattern)
    number = glob_forms.count(glob)
    if number is None or number > limit:
        return None
    return tuple(dict.fromkeys(glob_forms.expand(glob)))


def _check_text(pattern: Pattern) -> None:
    """Refuse what can be no pattern of any syntax."""
    text = pattern.text
    if text in {"", REGEX_MARK} or not pattern.bare:
        raise PatternError("it is empty")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise PatternError("it holds half of a surrogate pair") from None
    if size > MAX_TEXT_BYTES:
        raise PatternError(f"it has {size:,} bytes, more than {MAX_TEXT_BYTES:,}")


def _parsed(pattern: Pattern) -> Glob:
    """Parse a glob of either syntax."""
    return parse(pattern.text, braces=pattern.syntax is Syntax.GLOB)


def _compile_glob(pattern: Pattern) -> Compiled:
    """Compile a glob; one with braces matches a name that is the same text too."""
    text, glob = pattern.text, _parsed(pattern)
    verbatim = (text,) if pattern.syntax is Syntax.GLOB else ()
    number = glob_forms.count(glob)
    if number is not None and number <= MAX_NAMES:
        names = (*dict.fromkeys(glob_forms.expand(glob)), *verbatim)
        return Compiled(frozenset(names).__contains__, names=names)
    test = glob_forms.star_test(glob)
    if test is not None:
        return Compiled(test, glob_clues(glob))
    regex = glob_forms.to_regex(glob)
    matches = full_test(regex)
    return Compiled(
        lambda name: name in verbatim or matches(name), glob_clues(glob), lines=regex
    )
