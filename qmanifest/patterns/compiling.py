"""Patterns made ready to match."""

from __future__ import annotations

from qmanifest.patterns import glob_forms
from qmanifest.patterns.anchors import ANCHORED, full_test
from qmanifest.patterns.checking import MAX_NAMES, check_text, parsed
from qmanifest.patterns.clues import glob_clues
from qmanifest.patterns.compiled import Compiled
from qmanifest.patterns.plain import PLAIN
from qmanifest.patterns.syntax import Pattern, Syntax


def compile_pattern(pattern: Pattern) -> Compiled:
    """Make a pattern ready to match.

    Raises:
        PatternError: it cannot be used; the message is the reason.

    """
    check_text(pattern)
    if pattern.syntax in PLAIN:
        return PLAIN[pattern.syntax](pattern.text)
    if pattern.syntax in ANCHORED:
        return ANCHORED[pattern.syntax](pattern.bare)
    return _compile_glob(pattern)


def _compile_glob(pattern: Pattern) -> Compiled:
    """Compile a glob; one with braces matches a name that is the same text too."""
    text, glob = pattern.text, parsed(pattern)
    verbatim = (text,) if pattern.syntax is Syntax.GLOB else ()
    number = glob_forms.count(glob)
    if number is not None and number <= MAX_NAMES:
        names = (*dict.fromkeys(glob_forms.expand(glob)), *verbatim)
        return Compiled(frozenset(names).__contains__, names=names)
    test = glob_forms.star_test(glob)
    if test is not None:
        return Compiled(test, glob_clues(glob), is_quick=True)
    regex = glob_forms.to_regex(glob)
    matches = full_test(regex)
    return Compiled(
        lambda name: name in verbatim or matches(name), glob_clues(glob), lines=regex
    )
