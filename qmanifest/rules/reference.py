"""QM6: that a packed checkpoint was made from the 16-bit original (`--base`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint


@rule("QM603", "another-model", Severity.ERROR, needs=Depth.HEADERS)
def another_model(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The 16-bit original has none of the weights that are quantized.

    Names alone are compared, so no data has to be read.

    ## Why it matters
    It is the original of another model, or its names were changed, so it proves
    nothing: bits and group sizes stay unproven.

    ## Fix
    Name the checkpoint that was converted with `--base`.
    """
    if checkpoint.base is None or checkpoint.manifest is None:
        return
    weights = list(checkpoint.manifest.weights())
    if not weights or any(
        checkpoint.original(component.name, weight.name)
        for component, weight in weights
    ):
        return
    first = weights[0][1]
    yield Problem(
        f"the 16-bit original has none of the {len(weights)} quantized weights: no "
        f"{first.name!r}",
        (Location(checkpoint.config_name, first.pointer, first.name),),
        expected=len(weights),
        actual=0,
        hint="name the checkpoint that was converted with --base",
    )


RULES = (another_model,)
