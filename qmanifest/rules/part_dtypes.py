"""QM3, dtypes: that every part is stored in the type of number it should be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from qmanifest.families import DENSE, WORDS
from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.doubtful import doubts
from qmanifest.rules.labels import labels
from qmanifest.rules.misfits import wrong_dtypes
from qmanifest.rules.readings import is_row
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorInfo, TensorSpec


@rule("QM303", "wrong-dtype", Severity.ERROR, needs=Depth.HEADERS)
def wrong_dtype(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A part is stored in a dtype that its scheme does not have.

    Also scales and biases of one weight in two dtypes, two packings in one
    checkpoint, all parts of another format that has the same names, and a kept tensor
    that is not 16-bit (a warning).

    ## Why it matters
    Bytes are read as another type of number, or the loader refuses the mix.

    ## Fix
    Convert again with the right dtypes.
    """
    for each in doubts(checkpoint):
        component, store = each.component, each.store
        for weight in each.weights:
            codes = store.index.get(weight.name)
            if is_row(weight) and codes is not None and codes.dtype in WORDS:
                yield from _part_dtypes(checkpoint, weight, store)
        for kept in component.kept:
            tensor = store.index.get(kept.name)
            wide = tensor is not None and tensor.dtype in DENSE
            if tensor is not None and wide and tensor.dtype not in kept.dtypes:
                yield Problem(
                    f"{kept.name!r} is kept as {' or '.join(kept.dtypes)} by "
                    f"{kept.pointer} and stored {tensor}",
                    (
                        Location(checkpoint.config_name, kept.pointer, kept.name),
                        Location(tensor.file, tensor=kept.name),
                    ),
                    expected=" or ".join(kept.dtypes),
                    actual=tensor.dtype,
                    hint="store it 16-bit, as the config says",
                    severity=Severity.WARNING,
                )
    yield from wrong_dtypes(checkpoint)
    yield from labels(checkpoint)
    yield from _mixed_packings(checkpoint)


def _part_dtypes(
    checkpoint: Checkpoint, weight: Weight, store: Store
) -> Iterator[Problem]:
    """Check the dtype of every part that is stored."""
    floats: dict[str, TensorInfo] = {}
    for part in weight.parts():
        tensor = store.index.get(part.name)
        if tensor is None:
            continue
        if tensor.dtype not in part.dtypes:
            yield _dtype_problem(checkpoint, weight, part, tensor)
        elif part.role in {"scales", "biases"} and isinstance(weight.scheme, Affine):
            floats[part.role] = tensor
    if len({tensor.dtype for tensor in floats.values()}) > 1:
        scales, biases = floats["scales"], floats["biases"]
        yield Problem(
            f"{weight.name!r} has scales {scales} and biases {biases} of two dtypes",
            (
                Location(biases.file, tensor=biases.name),
                Location(scales.file, tensor=scales.name),
            ),
            expected=scales.dtype,
            actual=biases.dtype,
            hint="store both in the dtype of the scales",
        )


def _dtype_problem(
    checkpoint: Checkpoint, weight: Weight, part: TensorSpec, tensor: TensorInfo
) -> Problem:
    mode = ""
    if part.role == "scales" and tensor.dtype == "U8":
        mode = ", which a microscaling mode (mxfp4, mxfp8, nvfp4) has"
    return Problem(
        f"{part.role} {part.name!r} are stored {tensor}{mode}; {weight.scheme} has "
        f"{' or '.join(part.dtypes)}",
        (
            Location(tensor.file, tensor=part.name),
            Location(checkpoint.config_name, weight.pointer, weight.name),
        ),
        expected=" or ".join(part.dtypes),
        actual=tensor.dtype,
        hint="declare the mode that is stored, or convert the layer again",
    )


def _mixed_packings(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report a checkpoint whose weights are packed in two ways."""
    if len(frozenset().union(*(each.packings for each in doubts(checkpoint)))) < 2:  # noqa: PLR2004 - a mix takes two
        return
    stored = [
        (weight, store.index[weight.name])
        for component, store in checkpoint.found()
        for weight in component.weights
        if is_row(weight) and store.evidence.is_packed(weight.name)
    ]
    packs = Counter(weight.scheme.pack for weight, _ in stored)
    if len(packs) < 2:  # noqa: PLR2004 - layouts of other formats may mix
        return
    rare = min(packs, key=packs.__getitem__)
    example, tensor = next(each for each in stored if each[0].scheme.pack == rare)
    yield Problem(
        f"packings {' and '.join(sorted(packs))} are mixed: {example.name!r} is "
        f"stored {tensor}",
        (
            Location(tensor.file, tensor=example.name),
            Location(checkpoint.config_name, example.pointer),
        ),
        actual=" and ".join(sorted(packs)),
        hint="convert the whole checkpoint with one converter",
    )


RULES = (wrong_dtype,)
