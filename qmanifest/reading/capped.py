"""Report the first defects of one sort in full, and count the others."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from qmanifest.findings import Defect, Location, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

REPORTED: Final = 20
"""Defects of one sort in one file that are reported in full."""


def capped(defects: Iterable[Defect], total: int) -> tuple[Defect, ...]:
    """Take the first `REPORTED` of `total` defects, and one that counts the rest."""
    first = tuple(islice(defects, REPORTED))
    if total <= REPORTED:
        return first
    kind, like = first[-1].kind, first[-1].problem
    rest = Problem(
        f"{total - REPORTED:,} more like this, not listed",
        tuple(Location(file=place.file) for place in like.at[:1]),
        hint="correct those that are listed, and check again",
        severity=like.severity,
    )
    return (*first, Defect(kind, rest))
