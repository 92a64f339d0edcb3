"""Regular expressions by where in a name they have to match: all of it, or a part.

RE2 has no look-around, so the rule of `Syntax.BOUNDARY` is asked in other words: the
expression ends where the name does, or before a dot, or behind one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from qmanifest.errors import PatternError
from qmanifest.patterns.compiled import Compiled
from qmanifest.patterns.plain import PLAIN
from qmanifest.patterns.regexes import (
    compile_program,
    may_end_in_dot,
    regex_clues,
    works_per_line,
)
from qmanifest.patterns.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DOTS: Final = 32
"""Behind how many dots of a name an expression may end; each is tried by itself."""
_QUOTATION: Final = re.compile(r"(?<!\\)(?:\\\\)*\\Q")
"""What RE2 alone reads as the start of literal text, up to the expression's end."""


def full_test(regex: str) -> Callable[[str], bool]:
    """Build the test of whether an expression matches a whole name.

    Raises:
        PatternError: it cannot be used.

    """
    fullmatch = compile_program(regex).fullmatch
    return lambda name: fullmatch(_encoded(name)) is not None


def _full(regex: str) -> Compiled:
    accepts = full_test(regex)
    return Compiled(accepts, regex_clues(regex), lines=_per_line(regex, "{}"))


def _match(regex: str) -> Compiled:
    match = compile_program(regex).match
    return Compiled(
        lambda name: match(_encoded(name)) is not None,
        regex_clues(regex, ends=False),
        lines=_per_line(regex, "(?:{}).*"),
    )


def _search(regex: str) -> Compiled:
    search = compile_program(regex).search
    return Compiled(
        lambda name: search(_encoded(name)) is not None,
        regex_clues(regex, starts=False, ends=False),
        lines=_per_line(regex, ".*(?:{}).*"),
    )


def _boundary(text: str) -> Compiled:
    """Compile what transformers asks of a module that is not to be converted.

    Its `$` also matches before a line end that ends the name, which is left out here.
    """
    program = compile_program(text)
    if _QUOTATION.search(text):
        raise PatternError(r"not a valid regular expression: bad escape \Q")
    ends_well = full_test(rf"(?:{text})(?s:\..*)?")
    behind_dots = may_end_in_dot(text)

    def accepts(name: str) -> bool:
        if ends_well(name):
            return True
        if not behind_dots:
            return False
        encoded = _encoded(name)
        return program.match(encoded) is not None and any(
            program.fullmatch(encoded, 0, dot.end()) is not None
            for dot, _ in zip(
                re.finditer(rb"\.", encoded), range(MAX_DOTS), strict=False
            )
        )

    lines = None if behind_dots else _per_line(text, r"(?:{})(?:\..*)?")
    suffix = PLAIN[Syntax.SUFFIX](text)
    clues = regex_clues(text, ends=False)
    return Compiled(accepts, clues, lines=lines, also=suffix)


def _per_line(regex: str, form: str) -> str | None:
    """Write an expression for lines of a text; None where it has another meaning."""
    return form.replace("{}", regex) if works_per_line(regex) else None


def _encoded(name: str) -> bytes:
    return name.encode(errors="surrogatepass")


ANCHORED: Final[dict[Syntax, Callable[[str], Compiled]]] = {
    Syntax.REGEX: _full,
    Syntax.RE_MATCH: _match,
    Syntax.DYNAMIC: _match,
    Syntax.RE_SEARCH: _search,
    Syntax.BOUNDARY: _boundary,
}
"""How to compile a regular expression without its mark, by syntax."""
