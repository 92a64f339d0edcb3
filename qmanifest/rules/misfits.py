"""What to say of a weight of another layout than MLX's that is not as promised."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Final

from qmanifest.findings import Location, Problem
from qmanifest.names import numberless
from qmanifest.rules.base import of_component
from qmanifest.rules.fitting import fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.reading.stores import Store
    from qmanifest.rules.fit import Fault, Fit
    from qmanifest.tensors import Shape, TensorInfo, TensorSpec


SHOWN: Final = 3
"""Readings that a message gives."""


def misfits(checkpoint: Checkpoint, *faults: Fault) -> Iterator[Problem]:
    """Report the weights of some faults, one problem each."""
    for fit in fits(checkpoint):
        if fit.fault in faults:
            yield _problem(checkpoint, fit)


def _problem(checkpoint: Checkpoint, fit: Fit) -> Problem:
    """Say what the config resolves to, what is stored, and what would fit."""
    weight, scheme = fit.weight, fit.weight.scheme
    parts = fit.uneven or (((fit.codes, None),))
    (worst, size), *_ = parts
    asked = "" if size is None else f", where {list(size)} is expected"
    known = f", by {fit.witness.said_by}" if fit.witness else ""
    shape = f" of shape {list(fit.shape)}" if fit.shape else ""
    would = " or ".join(_reading(bits, group) for bits, group in fit.readings[:SHOWN])
    hint = "convert the layer again"
    if would:
        hint = f"declare {would} for it, or {hint}"
    return Problem(
        f"{weight.name!r}{shape} is declared {scheme} by "
        f"{checkpoint.config_name}#{weight.pointer}, and {worst.name!r} is stored "
        f"{worst}{asked}{known}" + (f"; {would} would fit" if would else ""),
        (
            Location(worst.file, tensor=worst.name),
            Location(checkpoint.config_name, weight.pointer, weight.name),
            *((fit.witness.at,) if fit.witness else ()),
        ),
        expected=str(scheme) if size is None else list(size),
        actual=str(worst) if size is None else list(worst.shape),
        hint=hint,
    )


def _reading(bits: int, group: int) -> str:
    return f"bits {bits} and group_size {group or 'of a whole row'}"


def missing_parts(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report parts that readers need and that no file has."""
    for fit in fits(checkpoint):
        for part in fit.weight.parts() if fit.fault != "label" else ():
            if part.role not in fit.stored and not part.optional:
                yield _missing(checkpoint, fit, part)


def _missing(checkpoint: Checkpoint, fit: Fit, part: TensorSpec) -> Problem:
    weight, codes = fit.weight, fit.codes
    return Problem(
        f"{weight.name!r} is stored quantized ({codes.name!r}, {codes}) and its "
        f"{part.role} {part.name!r} are in no safetensors file",
        (
            Location(codes.file, tensor=part.name),
            Location(codes.file, tensor=codes.name),
            Location(checkpoint.config_name, weight.pointer, weight.name),
        ),
        expected=f"{part.name}, {' or '.join(part.dtypes)}",
        hint="convert the layer again; codes without it are noise",
    )


def missing_beside_namesakes(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report optional parts that a weight's namesakes have and it has not."""
    for _, several in groupby(fits(checkpoint), lambda fit: id(fit.component)):
        alike: dict[str, list[Fit]] = defaultdict(list)
        for fit in several:
            alike[numberless(fit.weight.name)].append(fit)
        for group in alike.values():
            yield from _odd_ones(checkpoint, group)


def _odd_ones(checkpoint: Checkpoint, alike: list[Fit]) -> Iterator[Problem]:
    """Report what is absent of some of the weights that differ in numbers alone."""
    for part in alike[0].weight.parts():
        without = [fit for fit in alike if part.role not in fit.stored]
        if not part.optional or not without or 2 * len(without) >= len(alike):
            continue
        having = len(alike) - len(without)
        for fit in without:
            name = fit.weight.part(part.role)
            yield Problem(
                f"{fit.weight.name!r} has no {name!r}, and {having} of its "
                f"{len(alike)} namesakes have theirs{of_component(fit.component)}",
                (
                    Location(fit.codes.file, tensor=name),
                    Location(checkpoint.config_name, fit.weight.pointer),
                ),
                expected=name,
                hint="convert the layer again; an expert that calibration never "
                "reached has none",
            )


def bereft(store: Store) -> Iterator[Problem]:
    """Report weights of which scales are stored and codes are not."""
    for weight, (family, part) in store.evidence.bereft.items():
        codes = family.names.name(weight, "codes")
        stored = store.index.get(codes)
        if store.complete or stored is not None:
            lost = "in no safetensors file" if stored is None else f"stored {stored}"
            yield Problem(
                f"{part.name!r} ({part}) is stored, as {family.title} has it, and the "
                f"codes {codes!r} that it serves are {lost}",
                (
                    Location(part.file, tensor=codes),
                    Location(part.file, tensor=part.name),
                ),
                expected=codes,
                hint="convert the layer again; loaders may run it as zeros",
            )


def wrong_dtypes(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report parts that are stored in a dtype which their scheme does not have."""
    for fit in fits(checkpoint):
        for part in fit.weight.parts() if fit.fault != "label" else ():
            tensor = fit.stored.get(part.role)
            if tensor is not None and tensor.dtype not in part.dtypes:
                yield _dtype(checkpoint, fit, part, tensor)


def _dtype(
    checkpoint: Checkpoint, fit: Fit, part: TensorSpec, tensor: TensorInfo
) -> Problem:
    allowed = " or ".join(part.dtypes)
    return Problem(
        f"{part.role} {part.name!r} are stored {tensor}; {fit.weight.scheme} has "
        f"{allowed}",
        (
            Location(tensor.file, tensor=part.name),
            Location(checkpoint.config_name, fit.weight.pointer, fit.weight.name),
        ),
        expected=allowed,
        actual=tensor.dtype,
        hint="declare what is stored, or convert the layer again",
    )


def unproven(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report, once for each component, the weights that fit in several ways."""
    for _, several in groupby(fits(checkpoint), lambda fit: id(fit.component)):
        open_ones = [
            fit
            for fit in several
            if fit.fault is None and fit.witness is None and len(fit.readings) > 1
        ]
        if not open_ones:
            continue
        first = open_ones[0]
        ways = ", ".join(
            f"{bits}-bit/{group or 'row'}" for bits, group in first.readings
        )
        total = len(first.component.weights)
        yield Problem(
            f"shapes alone do not prove {len(open_ones)} of {total} weights"
            f"{of_component(first.component)}: {first.weight.name!r} fits {ways}",
            (
                Location(first.codes.file, tensor=first.weight.name),
                Location(checkpoint.config_name, first.weight.pointer),
            ),
            expected=total,
            actual=len(open_ones),
            hint="give a witness: --base with the 16-bit original, or a config.json "
            "with the model's dimensions",
        )


def padded_groups(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report weights whose last group of a row is not full."""
    for fit in fits(checkpoint):
        group = fit.weight.scheme.group_size
        shape: Shape | None = fit.shape
        if fit.weight.scheme.kind != "integer" or fit.fault is not None:
            continue
        scales = fit.stored.get("scales")
        if shape and group and shape[-1] % group and scales is not None:
            yield Problem(
                f"{fit.weight.name!r} has {shape[-1]} input features, no multiple of "
                f"group_size {group}: {scales.name!r} ({scales}) has a last group "
                f"of {shape[-1] % group}",
                (
                    Location(scales.file, tensor=scales.name),
                    Location(checkpoint.config_name, fit.weight.pointer),
                ),
                expected=0,
                actual=shape[-1] % group,
                hint="take a group size that divides, or keep the layer 16-bit: "
                "readers that do not pad refuse it",
            )
