"""Why a pattern cannot be used, and which names it can mean at all.

Nothing is compiled of plain names, which are many, and nothing loaded that would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.syntax import (
    MAX_TEXT_BYTES,
    REGEX_MARK,
    Pattern,
    Syntax,
)

if TYPE_CHECKING:
    from qmanifest.patterns.globs import Glob

PLAIN: Final = frozenset(
    {
        Syntax.EXACT,
        Syntax.SUBSTRING,
        Syntax.PREFIX,
        Syntax.SUFFIX,
        Syntax.SEGMENT,
        Syntax.IN_BLOCK,
        Syntax.TAG,
    }
)
"""The syntaxes in which no character is special."""
_GLOBS: Final = frozenset({Syntax.GLOB, Syntax.FNMATCH})
MAX_NAMES: Final = 10_000
"""The most names that a glob is expanded to."""


def check(pattern: Pattern) -> str | None:
    """Say why a pattern cannot be used; None where it can."""
    try:
        if pattern.syntax in PLAIN:  # nothing to compile, of many thousands
            check_text(pattern)
        else:
            from qmanifest.patterns.compiling import (  # noqa: PLC0415 - as above
                compile_pattern,
            )

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
    from qmanifest.patterns import glob_forms  # noqa: PLC0415 - plain names need none

    glob = parsed(pattern)
    number = glob_forms.count(glob)
    if number is None or number > limit:
        return None
    return tuple(dict.fromkeys(glob_forms.expand(glob)))


def parsed(pattern: Pattern) -> Glob:
    """Parse a glob of either syntax."""
    from qmanifest.patterns.globs import parse  # noqa: PLC0415 - plain names need none

    return parse(pattern.text, braces=pattern.syntax is Syntax.GLOB)


def check_text(pattern: Pattern) -> None:
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
