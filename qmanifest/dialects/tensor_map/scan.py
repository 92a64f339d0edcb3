"""`scan` of a `tensor-map` config: where the choice of kept tensors came from.

Provenance says how many of the most sensitive tensors of each of two parts stay
16-bit, the backbone and the depth decoder. Which tensors are of which part is not
written down, but a part is a set of families (first name components), so the counts
can be held against the lists: some split of the families has to fit them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict

from qmanifest.dialects.lowering.claims import is_exact
from qmanifest.findings import DefectKind, Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.findings import Defect
    from qmanifest.manifest import Component

Count = Annotated[int, Ge(0)]
_LABEL: Final = re.compile(r"(?<![0-9A-Za-z])(\d{1,2})b(\d{2,4})(?![0-9A-Za-z])")
"""`8b64` in a file name: bits and group size."""


class Scan(BaseModel):
    """The sensitivity scan, as stored."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True
    )

    file: str | None = None
    """Path of the scan's result. A label: it is never opened."""
    keep_backbone: Count | None = None
    """How many of the backbone's most sensitive tensors stay 16-bit."""
    keep_depth: Count | None = None
    """The same for the depth decoder; a number above the count means all."""
    rule: str | None = None
    """Prose."""


def label_defects(
    scan: Scan | None, bits: int, group_size: int, place: Place
) -> Iterator[Defect]:
    """Note a scan whose file name speaks of other bits or another group size."""
    label = _LABEL.search(scan.file) if scan is not None and scan.file else None
    if label is None:
        return
    named = (int(label[1]), int(label[2]))
    if named != (bits, group_size):
        yield place.defect(
            DefectKind.LABEL,
            f"scan.file is named {label[0]!r} while the config has bits {bits} "
            f"and group_size {group_size}",
            *("scan", "file"),
            expected=f"{bits}b{group_size}",
            actual=label[0],
            hint="check that the scan was made for this config",
            severity=Severity.NOTE,
        )


def count_defects(
    scan: Scan | None, component: Component, place: Place
) -> Iterator[Defect]:
    """Report kept counts that no split of the families into two parts explains."""
    if scan is None or scan.keep_backbone is None or scan.keep_depth is None:
        return
    kept = dict.fromkeys(
        name
        for entry in component.entries
        if entry.purpose == "keep"
        for name in ((entry.pattern.text,) if is_exact(entry) else entry.matches)
    )
    families = Counter(_family(name) for name in kept)
    quantized = {_family(weight.name) for weight in component.weights}
    if _explained(scan.keep_backbone, scan.keep_depth, families, quantized):
        return
    yield place.defect(
        DefectKind.PROVENANCE,
        f"scan keeps {scan.keep_backbone} tensors of the backbone and "
        f"{scan.keep_depth} of the depth part, which the {len(kept)} kept tensors "
        "do not add up to, however their families are split",
        "scan",
        expected=[scan.keep_backbone, scan.keep_depth],
        actual=len(kept),
        hint="correct keep_backbone and keep_depth, or the kept_16bit list",
        severity=Severity.WARNING,
    )


def _family(name: str) -> str:
    """Name a tensor's family, its first component."""
    return name.partition(".")[0]


def _explained(
    one: int, two: int, families: Counter[str], quantized: Collection[str]
) -> bool:
    """Whether some split of the families keeps `one` and `two` tensors.

    A part keeps just the number, or everything where it has fewer: then no family of
    it is quantized, and all that are belong to the other part.

    Args:
        one: the number that the first part keeps.
        two: the same of the second part.
        families: the kept tensors of each family.
        quantized: families with a quantized tensor.

    """
    total = families.total()
    if one + two == total:
        return _reachable(families.values()) >> one & 1 == 1
    if one + two < total:
        return False
    whole = _reachable(count for f, count in families.items() if f not in quantized)
    bound = total - sum(c for f, c in families.items() if f not in quantized)
    first = bound <= one <= total and whole >> (one - bound) & 1
    second = bound <= two <= total and whole >> (two - bound) & 1
    if first or second:
        return True
    # both parts may keep everything: some count below `one`, the rest below `two`
    fewest, fewer = max(0, total - two + 1), min(one - 1, total)
    return not quantized and (whole >> fewest) % (1 << (fewer - fewest + 1)) != 0


def _reachable(counts: Iterable[int]) -> int:
    """Find the sums of any of some counts: bit `n` is set where `n` is one.

    Equal counts are joined in powers of two, so that many small families stay cheap.
    """
    sums = 1
    for count, times in Counter(counts).items():
        left, step = times, 1
        while left:
            taken = min(step, left)
            sums |= sums << count * taken
            left, step = left - taken, step * 2
    return sums
