"""QM2, tensors: that the config and the files name the same tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dtypes import elements
from qmanifest.families import DENSE
from qmanifest.findings import Location, Problem, Severity
from qmanifest.patterns import Suggester
from qmanifest.rules.base import Depth, of_component, rule
from qmanifest.rules.doubtful import doubts
from qmanifest.rules.parameters import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint

NEGLIGIBLE = 100
"""A 16-bit weight is news when it is more than one part in this many."""


@rule("QM201", "missing-tensor", Severity.ERROR, needs=Depth.HEADERS, absence=True)
def missing_tensor(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A tensor the config promises is in no safetensors file.

    ## Why it matters
    Loaders fail on it, or leave the layer at its random initial value.

    ## Fix
    Run the converter again, or remove the entry from the config.
    """
    for each in doubts(checkpoint):
        component, store = each.component, each.store
        suggest: Suggester | None = None
        for weight in each.weights:
            renamed = (component.name, weight.pointer) in checkpoint.renames
            plain = store.index.get(weight.name)
            dense = plain is not None and plain.dtype in DENSE  # QM209 has it
            if weight.codes in store.index or renamed or dense:
                continue
            suggest = suggest or Suggester(store.evidence.logical)
            nearest = suggest.nearest(weight.name)
            meant = f"correct the name to {nearest!r}, or run" if nearest else "run"
            yield Problem(
                f"promised tensor {weight.name!r} is in no safetensors file"
                f"{of_component(component)}",
                (
                    Location(checkpoint.config_name, weight.pointer, weight.name),
                    *(Location(file) for file in store.files[:1]),
                ),
                expected=str(weight.scheme),
                hint=f"{meant} the converter again",
            )


@rule("QM202", "undeclared", Severity.ERROR, needs=Depth.HEADERS)
def undeclared(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A tensor is stored quantized and no entry of the config says so.

    ## Why it matters
    A loader that follows the config takes packed codes for weights, and fails, or
    computes garbage.

    ## Fix
    Add the tensor to the config, or store it 16-bit.
    """
    for each in doubts(checkpoint):
        component, store = each.component, each.store
        packed = sorted(filter(None, map(store.evidence.holds, each.others)))
        if not packed:
            continue
        declared = {weight.name for weight in component.weights}
        declared |= {kept.name for kept in component.kept}
        declared |= {change.example for change in checkpoint.renames.values()}
        for name, (family, tensor) in packed:
            if name in declared:
                continue
            called = "" if tensor.name == name else f" as {tensor.name!r}"
            yield Problem(
                f"{name!r} is stored packed{called} ({tensor}, {family.title}) and no "
                f"entry of {checkpoint.config_name} quantizes it",
                (
                    Location(tensor.file, tensor=tensor.name),
                    Location(checkpoint.config_name, component.pointer),
                ),
                expected="an entry",
                actual=str(tensor),
                hint="add the tensor to the config, or store it 16-bit",
            )


@rule("QM210", "uncovered", Severity.NOTE, needs=Depth.HEADERS)
def uncovered(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A 16-bit matrix is in none of the lists of a config that means to name all.

    A warning where the matrix is more than 1 % of the model's weights.

    ## Why it matters
    It was forgotten, or its name changed after the lists were made.

    ## Fix
    Add it to the keep list, or to the quantized tensors.
    """
    for each in doubts(checkpoint):
        component, store = each.component, each.store
        if not component.exhaustive or not each.others:
            continue
        covered = {weight.name for weight in component.weights}
        covered |= {kept.name for kept in component.kept}
        bare = [
            (name, tensor)
            for name, tensor in ((name, store.index[name]) for name in each.others)
            if tensor.dtype in DENSE
            and len(tensor.shape) > 1
            and name not in covered
            and not store.evidence.is_companion(name)
        ]
        total = parameters(component, store) if bare else 0
        for name, tensor in bare:
            large = elements(tensor.shape) * NEGLIGIBLE > total
            yield Problem(
                f"{name!r} ({tensor}) is neither kept nor quantized by any entry"
                f"{of_component(component)}",
                (
                    Location(tensor.file, tensor=name),
                    Location(checkpoint.config_name, component.pointer),
                ),
                actual=str(tensor),
                hint="add it to the keep list, or quantize it",
                severity=Severity.WARNING if large else None,
            )


RULES = (missing_tensor, undeclared, uncovered)
