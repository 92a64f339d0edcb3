"""Regular expressions from files, run by RE2: linear time, bounded memory.

Nothing in a config is ever run by `re`, whose time can double with every character.
RE2 has no look-around and no back-references; what it refuses is reported in its
own words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from qmanifest.errors import PatternError
from qmanifest.patterns.clues import Clues, joined, text_clues

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PROGRAM: Final = 1_250
"""The most instructions of a program.

Where RE2 cannot cache its states, it spends about 10 ns for each instruction and byte,
so this keeps the longest tensor name at the order of 10 ms.
"""
_MAX_MEMORY: Final = 1 << 20
"""Bytes for a program and its cached states. More makes hostile patterns slower."""

_OUTSIDE: Final = (
    (r"invalid perl operator: \(\?<?[=!]", "look-around"),
    (r"invalid perl operator", "the operator"),
    (r"invalid escape sequence: \\[1-9]", "the back-reference"),
)
_LONGEST_REASON: Final = 100
_TOO_LARGE: Final = ("invalid repetition size", "pattern too large")

_NOT_PER_LINE: Final = re.compile(r"\\[AzCQ]|\(\?(?![is]*:)")
"""What may mean something else when a name is one line of many."""
_TOKEN: Final = re.compile(
    r"""
    (?P<escaped> \\ [^\w\s] )
    | (?P<repeat> [*+?] | \{ [0-9]+ (?: , [0-9]* )? \} )
    | (?P<edge> [\^$] | \\[bB] )
    | (?P<opaque> \. | \\[dDwWsS]
        | \[ \^? \]? (?> \[:\w+:\] | \\. | [^\]\\] )*+ \] )
    | (?P<opening> \( (?: \?: )? (?!\?) )
    | (?P<closing> \) )
    | (?P<bar> \| )
    | (?P<plain> [^\\\[\](){}|*+?.^$] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ENDS_IT: Final = {"": {"bar"}, "edge": {"bar", "repeat"}}
"""The tokens outside of groups, by the one before, after which nothing is certain."""


class Program(Protocol):
    """What is used of a compiled expression of RE2."""

    @property
    def programsize(self) -> int:
        """The number of instructions."""

    def match(self, text: bytes) -> object | None:
        """Match a start of the text."""

    def search(self, text: bytes) -> object | None:
        """Match any part of the text."""

    def fullmatch(
        self, text: bytes, start: int = 0, stop: int | None = None
    ) -> object | None:
        """Match all of the text between two places."""

    def finditer(self, text: bytes) -> Iterator[Any]:
        """Walk over the matches."""


def compile_program(regex: str, *, lines: bool = False) -> Program:
    """Compile a regular expression, without `re:` in front.

    Args:
        regex: the expression.
        lines: match whole lines of a text instead, and never across its line ends. Only
            for what compiles without.

    Raises:
        PatternError: RE2 refuses it, or its program is too large.

    """
    import re2  # noqa: PLC0415 - most configs have no pattern that needs it

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = lines
    options.max_mem = _MAX_MEMORY
    text = f"(?m:^(?:{regex})$)" if lines else regex
    try:
        program: Program = re2.compile(text, options)
    except re2.error as error:
        raise PatternError(_reason(error.args[0])) from None
    if not lines and program.programsize > MAX_PROGRAM:
        raise PatternError(
            f"too large: it compiles to {program.programsize:,} instructions, "
            f"more than {MAX_PROGRAM:,}"
        )
    return program


def _reason(said: bytes | str) -> str:
    """Say in a phrase why RE2 refuses an expression."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    text = text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
    for start, phrase in _OUTSIDE:
        if re.match(start, text):
            operator = text.partition(": ")[2]
            return f"{phrase} {operator} is outside the safe subset that RE2 runs"
    if text.startswith(_TOO_LARGE):
        return f"too large: {text}"
    return f"not a valid regular expression: {text}"


def works_per_line(regex: str) -> bool:
    """Tell whether `compile_program(..., lines=True)` keeps the meaning."""
    return _NOT_PER_LINE.search(regex) is None


def regex_clues(regex: str, *, starts: bool = True, ends: bool = True) -> Clues:
    """Draw clues from a valid expression: the literal text outside of its groups.

    Where something is not understood there are none.

    Args:
        regex: the expression.
        starts: whether what it matches starts where a segment does.
        ends: whether what it matches ends where a segment does.

    """
    found: list[Clues] = []
    run, depth, previous, at = "", 0, "", 0
    while at < len(regex):
        token = _TOKEN.match(regex, at)
        if token is None:
            return Clues()
        at, kind = token.end(), str(token.lastgroup)
        depth += (kind == "opening") - (kind == "closing")
        if depth == 0 and kind in _ENDS_IT.get(previous, _ENDS_IT[""]):
            return Clues()
        if depth == 0 and kind in {"plain", "escaped"}:
            run += token[0][-1]
        elif kind != "edge":
            run = run[:-1] if kind == "repeat" and depth == 0 else run
            found += [text_clues(run, starts=starts)] if run else []
            run, starts = "", False
        previous = kind
    found += [text_clues(run, starts=starts, ends=ends)] if run else []
    return joined(found)


def may_end_in_dot(regex: str) -> bool:
    """Tell whether a valid expression may match a text that ends in a dot.

    True where that is not understood.
    """
    depth, at, last = 0, 0, ""
    while at < len(regex):
        token = _TOKEN.match(regex, at)
        if token is None:
            return True
        at, kind = token.end(), str(token.lastgroup)
        depth += (kind == "opening") - (kind == "closing")
        if depth == 0 and kind == "bar":
            return True
        last = token[0][-1] if kind in {"plain", "escaped"} else ""
    return last in {"", "."}
