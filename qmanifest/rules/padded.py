"""QM307: that rows are whole groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.misfits import padded_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint


@rule("QM307", "padded", Severity.WARNING, needs=Depth.HEADERS)
def padded(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The group size does not divide a row, so that its last group is not full.

    ## Why it matters
    Some readers pad the row, others refuse it.

    ## Fix
    Take a group size that divides, or keep the layer 16-bit.
    """
    yield from padded_groups(checkpoint)


RULES = (padded,)
