"""What to say of weights that are stored in another format than their label says."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem
from qmanifest.rules.base import of_component
from qmanifest.rules.fitting import fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.fit import Fit


def labels(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report, once for each component, format and line of the config, what is stored.

    The tensors of several formats have the same names; all of their shapes together
    say which it is.
    """
    alike: dict[tuple[str, str, str], list[Fit]] = defaultdict(list)
    for fit in fits(checkpoint):
        if fit.fault == "label" and fit.rival:
            key = (fit.component.name, fit.weight.pointer, fit.rival)
            alike[key].append(fit)
    for (_, pointer, rival), several in alike.items():
        first, total = several[0], len(several[0].component.weights)
        codes, scheme = first.codes, first.weight.scheme
        yield Problem(
            f"{len(several):,} of {total:,} weights{of_component(first.component)} are "
            f"stored as {rival}, and {checkpoint.config_name}#{pointer} declares "
            f"{scheme}: {codes.name!r} is {codes} beside "
            + ", ".join(
                f"{part.name.rpartition('.')[2]} {part}"
                for role, part in first.stored.items()
                if role != "codes"
            ),
            (
                Location(codes.file, tensor=codes.name),
                Location(checkpoint.config_name, pointer, first.weight.name),
            ),
            expected=str(scheme),
            actual=rival,
            hint=f"declare {rival}: that is what is stored",
        )
