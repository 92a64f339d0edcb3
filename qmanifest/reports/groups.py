"""Findings of one rule put together, so that people read a page and not a book."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.findings import Finding

_SEPARATE: Final = 3
"""Findings of one code and severity that are still shown one by one."""


class Group(msgspec.Struct, frozen=True):
    """Findings of one code and severity that are shown as one; mostly a single one."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding that stands for all."""
        return self.findings[0]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensor of each finding; empty unless every one has its own."""
        names = [finding.at[0].tensor for finding in self.findings if finding.at]
        known = dict.fromkeys(name for name in names if name is not None)
        return tuple(known) if len(known) == len(self.findings) else ()

    @property
    def title(self) -> str:
        """`QM302 error`, or `QM302 error x 188 tensors, first`."""
        title = f"{self.first.code} {self.first.severity}"
        if len(self.findings) == 1:
            return title
        noun = " tensors" if self.tensors else ""
        return f"{title} x {len(self.findings):,}{noun}, first"


def grouped(findings: Sequence[Finding], *, full: bool = False) -> list[Group]:
    """Group neighbours of one code and severity, unless they are few.

    Args:
        findings: in the order of a report: by severity, then by code.
        full: group nothing.

    """
    groups = []
    for _, same in groupby(findings, lambda each: (each.severity, each.code)):
        run = tuple(same)
        if full or len(run) <= _SEPARATE:
            groups += [Group((finding,)) for finding in run]
        else:
            groups.append(Group(run))
    return groups
