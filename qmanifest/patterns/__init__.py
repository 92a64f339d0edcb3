"""Patterns: how the entries of a config name tensors, and how to find what they meant.

`read_entry` reads an entry, `check` says why one cannot be used, `match` finds what
each of many matches, `Suggester` tells what a dead one may have meant, and `fold`
writes a set of names as few patterns. `READERS` has what each library makes of the
entries, and `disagreements` where two of them differ.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from qmanifest.patterns.checking import check, literal_names
from qmanifest.patterns.matching import Matches, match
from qmanifest.patterns.suggestions import Suggester, near, nearest
from qmanifest.patterns.syntax import Pattern, Syntax, read_entry

if TYPE_CHECKING:
    from qmanifest.patterns.changes import Change
    from qmanifest.patterns.comparing import Comparison, Disagreement, disagreements
    from qmanifest.patterns.folding import fold
    from qmanifest.patterns.fused import FUSED, Expanded, Split, expand
    from qmanifest.patterns.plain import tag_of
    from qmanifest.patterns.reader import Reader, looks_like_class
    from qmanifest.patterns.readers import READ_BY, READERS, read_by
    from qmanifest.patterns.regexes import may_end_in_dot

_LATER: Final = {
    "changes": ("Change",),
    "comparing": ("Comparison", "Disagreement", "disagreements"),
    "folding": ("fold",),
    "fused": ("FUSED", "Expanded", "Split", "expand"),
    "plain": ("tag_of",),
    "reader": ("Reader", "looks_like_class"),
    "readers": ("READERS", "READ_BY", "read_by"),
    "regexes": ("may_end_in_dot",),
}
"""Modules that load on first use of a name of theirs: most runs have no use for them.
"""
_MODULES: Final = {name: module for module, names in _LATER.items() for name in names}

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


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name is of
    """Load on first use what most runs have no use for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"qmanifest.patterns.{_MODULES[name]}"), name)
