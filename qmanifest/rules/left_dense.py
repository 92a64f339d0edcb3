"""QM2: that what a config quantizes as a whole was not left 16-bit in part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import elements
from qmanifest.families import DENSE
from qmanifest.findings import Location, Problem, Severity
from qmanifest.names import numberless
from qmanifest.rules.base import Depth, of_component, rule
from qmanifest.rules.doubtful import doubts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorInfo

EXPERTS: Final = ".experts."
"""What stacks of experts have in their names."""
BARE: Final = ("I8", "U8", "I32")
"""Dtypes of codes that no name shows, but for the scales beside them."""
LARGE: Final = 2
"""A stack of experts is news where it is more than one part in this many of a model."""


@rule("QM213", "left-dense", Severity.ERROR, needs=Depth.HEADERS)
def left_dense(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A matrix is stored as plain floats that the config's readers take for quantized.

    The config quantizes every linear layer, no entry keeps this one, and its namesakes
    in other layers are stored quantized. Also a stack of experts that holds most of
    the model, and codes that have lost their scales, which namesakes have.

    ## Why it matters
    Loaders build a quantized layer, find no codes for it, and leave it at random
    values or stop.

    ## Fix
    Add the module to the list of those that stay 16-bit, or convert it.
    """
    for each in doubts(checkpoint):
        component, store = each.component, each.store
        dtypes = (*BARE, *DENSE) if component.every_linear else BARE
        matrices = [
            tensor
            for tensor in map(store.index.__getitem__, each.others)
            if tensor.dtype in dtypes and len(tensor.shape) > 1
        ]
        if matrices and store.evidence.stored:
            yield from _left(checkpoint, component, store, matrices)


def _left(
    checkpoint: Checkpoint,
    component: Component,
    store: Store,
    matrices: Sequence[TensorInfo],
) -> Iterator[Problem]:
    """Report the dense matrices of one model that nothing keeps."""
    evidence = store.evidence
    judged = {each.name for each in component.kept}
    judged |= {each.name for each in component.weights}  # QM209 has those
    judged |= evidence.packed  # and QM202 what nothing declares
    quantized = {numberless(name): name for name in evidence.stored}
    total = sum(tensor.nbytes for tensor in store.index.values())
    for tensor in matrices:
        name = tensor.name
        if name in judged or evidence.is_companion(name) or evidence.holds(name):
            continue
        bare = tensor.dtype in BARE
        namesake = quantized.get(numberless(name))
        stack = not bare and EXPERTS in name and len(tensor.shape) > 2  # noqa: PLR2004 - a stack of matrices
        if namesake is not None:
            why = f"its namesake {namesake!r} is quantized"
        elif stack and tensor.nbytes * LARGE > total:
            why = f"it is {tensor.nbytes / total:.0%} of all bytes"
        else:
            continue
        yield Problem(
            f"{name!r} is stored {tensor}, nothing in {checkpoint.config_name} keeps "
            f"it 16-bit, and {why}{of_component(component)}",
            (
                Location(tensor.file, tensor=name),
                Location(checkpoint.config_name, component.pointer),
            ),
            expected="quantized, or kept by an entry",
            actual=f"{tensor}, {elements(tensor.shape):,} parameters",
            hint="list the module among those that stay 16-bit, or convert it",
        )


RULES = (left_dense,)
