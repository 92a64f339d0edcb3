"""QM9: notes on what is consistent and still worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import DefectKind, Problem, Severity
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint


@rule("QM901", "label", Severity.NOTE, needs=Depth.MANIFEST)
def label(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A name or a sentence in the config speaks of other numbers than its keys do.

    ## Why it matters
    Labels are not read by any loader, but people go by them.

    ## Fix
    Correct the label, if it is the label that is wrong.
    """
    yield from checkpoint.defects_of(DefectKind.LABEL)


RULES = (label,)
