"""QM3: that the stored shapes and dtypes are those of the promised scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dtypes import elements
from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.doubtful import doubtful, doubtful_packed, doubts
from qmanifest.rules.misfits import misfits, unproven
from qmanifest.rules.readings import packed_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.rules.doubtful import Doubt, Doubts
    from qmanifest.rules.readings import Packed


@rule("QM301", "wrong-bits", Severity.ERROR, needs=Depth.HEADERS)
def wrong_bits(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The packed codes are as wide as other bits than the config's.

    With a witness of the logical width the stored bits are known; without one, what
    would fit at the promised group size is said.

    ## Why it matters
    Every code is read across the borders of two: the layer computes noise, or the
    loader stops at a shape.

    ## Fix
    Declare the bits that are stored, or convert the layer again.
    """
    for packed in doubtful_packed(checkpoint):
        if packed.fault == "bits":
            yield _misread(checkpoint, packed)
    yield from misfits(checkpoint, "bits")


@rule("QM302", "wrong-group", Severity.ERROR, needs=Depth.HEADERS)
def wrong_group(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The scales are as many as another group size than the config's asks for.

    Also biases or zeros that are not as many as the scales, and a global scale that
    is not one for each expert.

    ## Why it matters
    Scales are applied to the wrong inputs, or the loader stops at a shape.

    ## Fix
    Declare the group size that is stored, or convert the layer again.
    """
    for packed in doubtful_packed(checkpoint):
        if packed.fault == "group":
            yield _misread(checkpoint, packed)
        elif packed.fault == "rows":
            codes, scales = packed.codes, packed.scales
            yield Problem(
                f"{packed.weight.name!r} has codes {codes} and scales {scales}: "
                f"{list(codes.shape[:-1])} rows against {list(scales.shape[:-1])}",
                (
                    Location(scales.file, tensor=scales.name),
                    Location(codes.file, tensor=codes.name),
                    Location(checkpoint.config_name, packed.weight.pointer),
                ),
                expected=list(codes.shape[:-1]),
                actual=list(scales.shape[:-1]),
                hint="convert the layer again",
            )
        yield from _uneven(checkpoint, packed)
    yield from misfits(checkpoint, "group")


def _uneven(checkpoint: Checkpoint, packed: Packed) -> Iterator[Problem]:
    """Report what stands beside the scales and is not of their number."""
    scales, experts = packed.scales, elements(packed.codes.shape[:-2])
    for other in packed.others:
        is_global = other.name.endswith(".global_scale")
        if (
            elements(other.shape) == experts
            if is_global
            else other.shape == scales.shape
        ):
            continue
        against = f"{experts} experts" if is_global else f"scales {scales}"
        yield Problem(
            f"{packed.weight.name!r} has {other.name!r} ({other}) against {against}",
            (
                Location(other.file, tensor=other.name),
                Location(scales.file, tensor=scales.name),
                Location(checkpoint.config_name, packed.weight.pointer),
            ),
            expected=experts if is_global else list(scales.shape),
            actual=list(other.shape),
            hint="convert the layer again",
        )


def _misread(checkpoint: Checkpoint, packed: Packed) -> Problem:
    """Say what the config resolves to, what is stored, and what would fit."""
    weight, codes, scales = packed.weight, packed.codes, packed.scales
    scheme = weight.scheme
    fits = " or ".join(f"{bits}-bit/{group}" for bits, group in packed.readings)
    stored = f"stored as {fits}" if fits else "stored as neither"
    known = f", by {packed.witness.said_by}" if packed.witness else ""
    if not packed.readings and packed.witness is None:
        known = f" (no bits and group size explain {packed.product} bits per scale)"
    related = (packed.witness.at,) if packed.witness else ()
    hint = "convert the layer again"
    if packed.readings:
        bits, group = packed.readings[0]
        hint = f"declare bits {bits} and group_size {group} for it, or {hint}"
    return Problem(
        f"{weight.name!r} is declared {scheme.bits}-bit/{scheme.group_size} by "
        f"{checkpoint.config_name}#{weight.pointer} and {stored}: codes {codes}, "
        f"scales {scales}{known}",
        (
            Location(checkpoint.config_name, weight.pointer, weight.name),
            Location(codes.file, tensor=codes.name),
            Location(scales.file, tensor=scales.name),
            *related,
        ),
        expected={"bits": scheme.bits, "group_size": scheme.group_size},
        actual=[{"bits": bits, "group_size": group} for bits, group in packed.readings],
        hint=hint,
    )


@rule("QM304", "wrong-shape", Severity.ERROR, needs=Depth.HEADERS)
def wrong_shape(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A weight's logical shape is not the one that its witness has.

    The witness is the declared shape, the 16-bit original or the model's dimensions.

    ## Why it matters
    The tensor is another layer's, or another model's.

    ## Fix
    Correct the declared shape, or convert the layer again.
    """
    for packed in doubtful_packed(checkpoint):
        if packed.fault == "shape" and packed.witness is not None:
            weight, codes = packed.weight, packed.codes
            logical = (*codes.shape[:-1], packed.promised_width)
            yield Problem(
                f"{weight.name!r} is stored as {list(logical)} ({codes} at "
                f"{weight.scheme.bits} bits), against {packed.witness.said_by}",
                (
                    Location(codes.file, tensor=weight.name),
                    packed.witness.at,
                    Location(checkpoint.config_name, weight.pointer),
                ),
                expected=list(packed.witness.shape or (packed.witness.in_features,)),
                actual=list(logical),
                hint="correct the declared shape, or convert the layer again",
            )
    yield from misfits(checkpoint, "shape", "parts")
    for component, _, weight in doubtful(checkpoint):
        yield from _against_original(checkpoint, component, weight)


def _against_original(
    checkpoint: Checkpoint, component: Component, weight: Weight
) -> Iterator[Problem]:
    """Compare a declared shape with the 16-bit original's."""
    original = checkpoint.original(component.name, weight.name)
    if original is None or not weight.shape or original.shape == weight.shape:
        return
    yield Problem(
        f"{weight.name!r} is declared {list(weight.shape)}, and the 16-bit original "
        f"has {list(original.shape)}",
        (
            Location(checkpoint.config_name, weight.pointer, weight.name),
            Location(original.file, tensor=weight.name),
        ),
        expected=list(original.shape),
        actual=list(weight.shape),
        hint="correct the declared shape",
    )


@rule("QM305", "not-provable", Severity.NOTE, needs=Depth.HEADERS)
def not_provable(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Bits and group size fit what is stored, and so do others: nothing tells which.

    Shapes fix only the product of bits and group size. A declared shape, the 16-bit
    original (`--base`) or the model's `config.json` decides.

    ## Why it matters
    4-bit groups of 32 and 2-bit groups of 64 are stored alike, and read differently.

    ## Fix
    Give a witness: `--base`, or a `config.json` beside the shards.
    """
    yield from unproven(checkpoint)
    for each in doubts(checkpoint):
        component = each.component
        open_ones = _unproven(checkpoint, each)
        if not open_ones:
            continue
        first = next(packed_weights(checkpoint, open_ones[:1]))
        fits = ", ".join(f"{bits}-bit/{group}" for bits, group in first.readings)
        which = f" of {component.name!r}" if component.name else ""
        yield Problem(
            f"shapes alone do not prove {len(open_ones)} of {len(component.weights)} "
            f"weights{which}: {first.weight.name!r} fits {fits}",
            (
                Location(first.codes.file, tensor=first.weight.name),
                Location(checkpoint.config_name, first.weight.pointer),
            ),
            expected=len(component.weights),
            actual=len(open_ones),
            hint="give a witness: --base with the 16-bit original, or a config.json "
            "with the model's dimensions",
        )


def _unproven(checkpoint: Checkpoint, each: Doubts) -> list[Doubt]:
    """List the weights of a component that fit as promised and otherwise, in order."""
    weights = each.unproven
    found = {
        id(packed.weight)
        for packed in doubtful_packed(checkpoint)
        if packed.component is each.component
        and packed.fault is None
        and packed.witness is None
        and len(packed.readings) > 1
    }
    if found:
        found.update(map(id, weights))
        weights = tuple(one for one in each.component.weights if id(one) in found)
    return [(each.component, each.store, weight) for weight in weights]


RULES = (wrong_bits, wrong_group, wrong_shape, not_provable)
