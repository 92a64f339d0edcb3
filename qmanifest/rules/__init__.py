"""What must hold: one file per family, every rule in the tuple `RULES`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from qmanifest.rules import (
    across,
    advice,
    config,
    described,
    entries,
    files,
    fused,
    index,
    layout,
    left_dense,
    names,
    orders,
    padded,
    padding,
    part_dtypes,
    parts,
    readers,
    reference,
    shards,
    stated,
    values,
)

if TYPE_CHECKING:
    from qmanifest.rules.base import Rule

_FAMILIES: Final[tuple[tuple[Rule, ...], ...]] = (
    files.RULES,
    config.RULES,
    names.RULES,
    entries.RULES,
    parts.RULES,
    layout.RULES,
    part_dtypes.RULES,
    shards.RULES,
    index.RULES,
    described.RULES,
    values.RULES,
    readers.RULES,
    left_dense.RULES,
    fused.RULES,
    padded.RULES,
    orders.RULES,
    padding.RULES,
    stated.RULES,
    reference.RULES,
    across.RULES,
    advice.RULES,
)
RULES: Final[tuple[Rule, ...]] = tuple(
    sorted(chain.from_iterable(_FAMILIES), key=lambda each: each.code)
)
"""Every rule, in the order of the codes."""
