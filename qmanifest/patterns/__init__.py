"""Patterns: how the entries of a config name tensors, and how to find what they meant.

`read_entry` reads an entry, `check` says why one cannot be used, `match` finds what
each of many matches, `Suggester` tells what a dead one may have meant, and `fold`
writes a set of names as few patterns.
"""

from qmanifest.patterns.changes import Change
from qmanifest.patterns.compiling import check, literal_names
from qmanifest.patterns.folding import fold
from qmanifest.patterns.matching import Matches, match
from qmanifest.patterns.suggestions import Suggester, near, nearest
from qmanifest.patterns.syntax import Pattern, Syntax, read_entry

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
