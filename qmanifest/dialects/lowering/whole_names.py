"""Patterns of every syntax, written as text for vocabularies of whole names.

Those have plain names, globs and `re:` expressions, and are about tensors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from qmanifest.dialects.lowering.claims import escaped
from qmanifest.errors import EmitError
from qmanifest.patterns import Pattern, Syntax, may_end_in_dot, read_entry

if TYPE_CHECKING:
    from collections.abc import Callable

_AROUND: Final = {
    Syntax.SUBSTRING: ("*", "*"),
    Syntax.PREFIX: ("", "*"),
    Syntax.SUFFIX: ("*", ""),
}
"""What stands around a plain text in a glob that means the same."""
_REGEXES: Final[dict[Syntax, Callable[[str, str], str]]] = {
    Syntax.SUBSTRING: lambda text, _: f"(?s:.*{text}.*)",
    Syntax.PREFIX: lambda text, _: f"{text}(?s:.*)",
    Syntax.SUFFIX: lambda text, _: f"(?s:.*){text}",
    Syntax.REGEX: lambda _, regex: f"(?:{regex})",
    Syntax.RE_MATCH: lambda _, regex: f"(?:{regex})(?s:.*)",
    Syntax.DYNAMIC: lambda _, regex: f"(?:{regex})(?s:.*)",
    Syntax.RE_SEARCH: lambda _, regex: f"(?s:.*)(?:{regex})(?s:.*)",
    Syntax.BOUNDARY: lambda text, regex: rf"(?:(?:{regex})(?s:\..*)?|(?s:.*){text})",
}
"""An expression that means the same, made of the escaped text and of the bare one."""

_QUOTATION: Final = re.compile(r"\\Q")
"""What has no end but that of the whole expression."""
_EDGES: Final = re.compile(r"\$|\\[zbBQ]")
"""What asks where a name ends, and would ask it of the longer name."""


def as_whole_name(pattern: Pattern, appended: str = "") -> str:
    """Write a pattern as text that vocabularies of whole names read the same.

    Args:
        pattern: a usable pattern of any syntax.
        appended: what the names that it matches lack to be whole.

    Raises:
        EmitError: no such text means the same.

    """
    text, syntax = pattern.text, pattern.syntax
    if syntax in _AROUND and read_entry(text).syntax is Syntax.EXACT:
        before, after = _AROUND[syntax]
        return f"{before}{text}{after}{appended}"
    if syntax in {Syntax.EXACT, Syntax.GLOB} or (syntax, appended) == ("regex", ""):
        return text + appended
    if syntax is Syntax.FNMATCH and "{" not in text and not text.startswith("re:"):
        return text + appended
    edges = _EDGES if appended else _QUOTATION
    about_edges = syntax not in _AROUND and edges.search(pattern.bare)
    behind_dots = syntax is Syntax.BOUNDARY and may_end_in_dot(pattern.bare)
    if syntax not in _REGEXES or behind_dots or about_edges:
        raise EmitError(f"no words for the {syntax} entry {text!r}")
    regex = _REGEXES[syntax](escaped(text), pattern.bare)
    return f"re:{regex}{escaped(appended)}"
