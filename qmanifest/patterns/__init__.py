"""Patterns: how the entries of a config name tensors, and how to find what they meant.

`read_entry` reads an entry, `check` says why one cannot be used, `match` finds what
each of many matches, `Suggester` tells what a dead one may have meant, and `fold`
writes a set of names as few patterns.
"""

from typing import TYPE_CHECKING, Any

from qmanifest.patterns.checking import check, literal_names
from qmanifest.patterns.matching import Matches, match
from qmanifest.patterns.suggestions import Suggester, near, nearest
from qmanifest.patterns.syntax import Pattern, Syntax, read_entry

if TYPE_CHECKING:
    from qmanifest.patterns.changes import Change
    from qmanifest.patterns.folding import fold

__all__ = [
    "Change",
    "Matches",
    "Pattern",
    "Suggester",
    "Syntax",
    "check",
    "fold",
    "literal_names",
    "match",
    "near",
    "nearest",
    "read_entry",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name is of
    """Load on first use what most runs have no use for."""
    if name == "fold":
        from qmanifest.patterns.folding import fold  # noqa: PLC0415 - on first use

        return fold
    if name == "Change":
        from qmanifest.patterns.changes import Change  # noqa: PLC0415 - on first use

        return Change
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
