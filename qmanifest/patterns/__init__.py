"""Patterns: how the entries of a config name tensors, and how to find what they meant.

`read_entry` reads an entry, `check` says why one cannot be used, `match` finds what
each of many matches, `Suggester` tells what a dead one may have meant, and `fold`
writes a set of names as few patterns. `READERS` has what each library makes of the
entries, and `disagreements` where two of them differ.
"""

from qmanifest.patterns.changes import Change
from qmanifest.patterns.comparing import Comparison, Disagreement, disagreements
from qmanifest.patterns.compiling import check, literal_names
from qmanifest.patterns.folding import fold
from qmanifest.patterns.fused import FUSED, Expanded, Split, expand
from qmanifest.patterns.matching import Matches, match
from qmanifest.patterns.plain import tag_of
from qmanifest.patterns.reader import Reader, looks_like_class
from qmanifest.patterns.readers import READ_BY, READERS, read_by
from qmanifest.patterns.regexes import may_end_in_dot
from qmanifest.patterns.suggestions import Suggester, near, nearest
from qmanifest.patterns.syntax import Pattern, Syntax, read_entry

__all__ = [
    "FUSED",
    "READERS",
    "READ_BY",
    "Change",
    "Comparison",
    "Disagreement",
    "Expanded",
    "Matches",
    "Pattern",
    "Reader",
    "Split",
    "Suggester",
    "Syntax",
    "check",
    "disagreements",
    "expand",
    "fold",
    "literal_names",
    "looks_like_class",
    "match",
    "may_end_in_dot",
    "near",
    "nearest",
    "read_by",
    "read_entry",
    "tag_of",
]
