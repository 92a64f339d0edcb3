"""QM9: notes on what is consistent and still worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import DefectKind, Location, Problem, Severity
from qmanifest.rules.base import Depth, of_component, rule
from qmanifest.schemes import Opaque

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


@rule("QM902", "not-decoded", Severity.NOTE, needs=Depth.HEADERS)
def not_decoded(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Weights are of a format whose values are not decoded here.

    Names, dtypes and, where they are known, shapes were checked, and bytes counted.

    ## Why it matters
    Whether the numbers make sense was not looked at.

    ## Fix
    None is needed; load the checkpoint with the library that wrote it to be sure.
    """
    for component, store in checkpoint.found():
        opaque = [w for w in component.weights if isinstance(w.scheme, Opaque)]
        if opaque:
            first = opaque[0]
            codes = store.index.get(first.codes)
            yield Problem(
                f"values of {len(opaque)} of {len(component.weights)} weights"
                f"{of_component(component)} are not decoded: {first.name!r} is "
                f"{first.scheme}",
                (
                    Location(codes.file if codes else None, tensor=first.name),
                    Location(checkpoint.config_name, first.pointer),
                ),
                actual=str(first.scheme),
                hint="load the checkpoint with the library that wrote it to be sure",
            )


RULES = (label, not_decoded)
