"""Lines that are all plain names, as columns: a config has a hundred thousand of them.

What `claims` and `founding` find out of each line is known of a plain name at once: it
can be used, and it matches itself where it is stored.
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from qmanifest.dialects.lowering.mlx_layout import as_stored
from qmanifest.dialects.lowering.records import make_many
from qmanifest.evidence import COMPANIONS, Evidence
from qmanifest.families import MLX_NAMES
from qmanifest.layouts import U8_NIBBLES
from qmanifest.manifest import Entry, Weight
from qmanifest.patterns import Pattern, Syntax, check
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex, TensorInfo

    _Stored = tuple[TensorInfo | None, ...]

_SHORT: Final = 4


def are_plain(names: Sequence[str], patterns: Sequence[Pattern]) -> bool:
    """Whether every pattern is a name as it stands, and surely one that can be used."""
    syntaxes = list(map(attrgetter("syntax"), patterns))
    if syntaxes.count(Syntax.EXACT) < len(names) or not "".join(names).isascii():
        return False
    # Of ASCII names, what cannot be used is too long, or no more than a `re:`.
    doubtful = [max(names, key=len, default="a")]
    if min(map(len, names), default=_SHORT) < _SHORT:
        doubtful += [name for name in names if len(name) < _SHORT]
    return all(check(Pattern(name, Syntax.EXACT)) is None for name in doubtful)


class PlainNames(NamedTuple):
    """Plain names that a config quantizes, and what it says of each."""

    names: Sequence[str]
    patterns: Sequence[Pattern]
    pointers: Sequence[str]
    schemes: Sequence[Scheme]
    shapes: Sequence[Shape | None]

    def lower(
        self, index: TensorIndex | None
    ) -> tuple[tuple[Entry, ...], tuple[Weight, ...]]:
        """Make the entry and the weight of each line, against the stored tensors."""
        names, count = self.names, len(self.names)
        stored = None if index is None else tuple(map(index.by_name.get, names))
        entries = make_many(
            Entry,
            count,
            self.pointers,
            self.patterns,
            repeat("quantize"),
            _matches(names, stored, index),
            repeat(None),  # an absent name is QM201's
            repeat(""),
            repeat(""),
            repeat(()),  # all readers of a plain name agree
        )
        schemes = _as_stored(self.schemes, names, stored, index)
        columns = (names, schemes, self.pointers, self.shapes, repeat(MLX_NAMES))
        return entries, make_many(Weight, count, *columns)


def _matches(
    names: Sequence[str], stored: _Stored | None, index: TensorIndex | None
) -> Iterable[tuple[str, ...]]:
    """Match each name with the stored ones that a config talks about."""
    if index is None or stored is None:
        return zip(names, strict=True)
    if all(stored) and not any(map(str.endswith, names, repeat(COMPANIONS))):
        return zip(names, strict=True)
    companion = index.derived(Evidence).is_companion
    return [(name,) if name in index and not companion(name) else () for name in names]


def _as_stored(
    schemes: Sequence[Scheme],
    names: Sequence[str],
    stored: _Stored | None,
    index: TensorIndex | None,
) -> Sequence[Scheme]:
    """Refine every scheme by what its config leaves open: nothing for affine words."""
    if index is None or stored is None:
        return schemes
    dtypes = {codes.dtype for codes in stored if codes is not None}
    if {Affine}.issuperset(map(type, schemes)) and U8_NIBBLES.word_dtype not in dtypes:
        return schemes
    pairs = zip(schemes, names, strict=True)
    return [as_stored(scheme, name, index) for scheme, name in pairs]
