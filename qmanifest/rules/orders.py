"""QM504: that every input is of a group that exists."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.fitting import fits
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.fit import Fit


@rule("QM504", "group-index", Severity.ERROR, needs=Depth.DATA)
def group_index(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A group index names a group that does not exist, or an order nobody declared.

    `g_idx` says which group an input is of. An index beyond the last group is an
    error; an order where the config says that there is none is a warning.

    ## Why it matters
    Readers take a scale from beyond the table, or another group's.

    ## Fix
    Convert the layer again, or declare the order (`desc_act`).
    """
    for fit in fits(checkpoint):
        scheme = fit.weight.scheme
        if isinstance(scheme, Integer) and fit.shape and fit.fault is None:
            stored = fit.bytes_of("g_idx")
            if stored:
                yield from _indexes(checkpoint, fit, scheme, stored)


def _indexes(
    checkpoint: Checkpoint, fit: Fit, scheme: Integer, stored: bytes
) -> Iterator[Problem]:
    """Judge one weight's group index."""
    tensor, inputs = fit.stored["g_idx"], (fit.shape or (0,))[-1]
    if tensor.dtype != "I32":
        return
    indexes = array("i", stored)
    size = scheme.group_size or inputs
    groups = -(-inputs // size)
    at = (
        Location(
            tensor.file, tensor=tensor.name, byte_range=(tensor.begin, tensor.end)
        ),
        Location(checkpoint.config_name, fit.weight.pointer),
    )
    least, most = min(indexes), max(indexes)
    if set(indexes) == {-1}:
        return  # no order, as compressed-tensors writes it
    if least < 0 or most >= groups:
        yield Problem(
            f"{tensor.name!r} names groups {least} to {most}; {fit.weight.name!r} has "
            f"{groups} groups of {size}, 0 to {groups - 1}",
            at,
            expected=[0, groups - 1],
            actual=[least, most],
            hint="convert the layer again",
        )
    elif scheme.order == "may-be-listed" and not _is_sequential(indexes, size):
        yield Problem(
            f"{tensor.name!r} has the inputs of {fit.weight.name!r} in another order "
            "than one group after the other, and the config declares no order",
            at,
            hint="declare desc_act true, or convert the layer again: readers that "
            "trust the config ignore the order",
            severity=Severity.WARNING,
        )


def _is_sequential(indexes: array[int], size: int) -> bool:
    return all(group == place // size for place, group in enumerate(indexes))


RULES = (group_index,)
