"""QM5: that scales and codes have values that a weight can be made of (`--deep`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmanifest.dtypes import FLOAT
from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.zero_points import other_conventions
from qmanifest.schemes import Affine, Integer, ZeroPoint
from qmanifest.spreads import PADDED_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.value_counts import Counts


def _scanned(checkpoint: Checkpoint) -> tuple[Counts, ...]:
    """Read the bytes, once for all rules of this family."""
    from qmanifest.rules.value_scan import scan  # noqa: PLC0415 - numpy, for --deep only

    return scan(checkpoint)


def _problem(
    checkpoint: Checkpoint, counts: Counts, what: str, number: int, hint: str
) -> Problem:
    """Say how many elements of which tensor are what."""
    tensor, weight = counts.tensor, counts.weight
    of = f" of {weight.name!r}" if weight and weight.name != tensor.name else ""
    related: tuple[Location, ...] = ()
    if weight is not None:
        related = (Location(checkpoint.config_name, weight.pointer, weight.name),)
    return Problem(
        f"{number:,} of {counts.elements:,} {_UNITS.get(counts.role, 'values')} in "
        f"{tensor.name!r} ({tensor}){of} {what}",
        (
            Location(
                tensor.file,
                tensor=tensor.name,
                byte_range=(tensor.begin, tensor.end),
            ),
            *related,
        ),
        expected=0,
        actual=number,
        hint=hint,
    )


def _is_never_zero(counts: Counts) -> bool:
    """Whether no writer makes a scale of zero, though a group may be constant."""
    scheme = counts.weight.scheme if counts.weight else None
    if isinstance(scheme, Integer):
        return scheme.spread.form not in PADDED_FORMS
    return isinstance(scheme, (Affine, ZeroPoint))


_UNITS = {
    "scales": "scales",
    "biases": "biases",
    "zeros": "zero points",
    "codes": "bytes of codes",
}


@rule("QM501", "not-finite", Severity.ERROR, needs=Depth.DATA)
def not_finite(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Scales, biases or zero points hold NaN or infinity.

    In a tensor that is kept 16-bit it is a warning: masks have infinities on purpose.

    ## Why it matters
    One such scale turns a whole group, and soon every activation, into NaN.

    ## Fix
    Convert the layer again, in float32 where float16 overflows.
    """
    for counts in _scanned(checkpoint):
        if not counts.not_finite or counts.tensor.dtype not in FLOAT:
            continue
        problem = _problem(
            checkpoint,
            counts,
            "are NaN or infinite",
            counts.not_finite,
            "convert the layer again, in float32 where float16 overflows",
        )
        kept = counts.role == "kept"
        yield replace(problem, severity=Severity.WARNING) if kept else problem


@rule("QM502", "zero-scale", Severity.WARNING, needs=Depth.DATA)
def zero_scale(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Scales of an affine weight are zero, so that their groups are constant.

    MLX never writes one: a group of equal values has a scale of at least 1e-7. Where
    all scales of a weight are zero it is an error: they were never written.

    ## Why it matters
    All inputs of such a group have one weight, whatever their codes say.

    ## Fix
    Convert the layer again; a float16 scale may have underflowed.
    """
    for counts in _scanned(checkpoint):
        every = counts.elements == counts.zeros
        if counts.zeros and (every or _is_never_zero(counts)):
            problem = _problem(
                checkpoint,
                counts,
                "are zero",
                counts.zeros,
                "convert the layer again; a float16 scale may have underflowed",
            )
            yield replace(problem, severity=Severity.ERROR) if every else problem


@rule("QM503", "zero-codes", Severity.ERROR, needs=Depth.DATA)
def zero_codes(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Every code of a weight is zero.

    ## Why it matters
    The bytes were never written: a sparse file, or a download that was resumed in
    the wrong place. A layer that is constant, which the least scale shows, is sound.

    ## Fix
    Download the file, or convert the layer, again.
    """
    scanned = _scanned(checkpoint)
    constant = {id(c.weight) for c in scanned if c.elements == c.least > 0}
    for counts in scanned:
        unwritten = counts.role == "codes" and not counts.written
        if counts.elements and unwritten and id(counts.weight) not in constant:
            yield _problem(
                checkpoint,
                counts,
                "are zero: the codes were never written",
                counts.elements,
                "download the file, or convert the layer, again",
            )


@rule("QM506", "zero-point-range", Severity.ERROR, needs=Depth.DATA)
def zero_point_range(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Zero points are stored in another convention, or beyond the largest code.

    Those of a symmetric weight are all the middle code, or one less where the format
    stores them so; if they are not, it is a warning. So is one that has all bits set
    where readers add one: to some it is 0 then, to others beyond the largest code.

    ## Why it matters
    They are zero points of another width or format, or bytes of something else: every
    weight is off by whole steps.

    ## Fix
    Declare the format that is stored, or convert the layer again.
    """
    for counts in _scanned(checkpoint):
        if counts.out_of_range:
            scheme = counts.weight.scheme if counts.weight else None
            largest = 2**scheme.bits - 1 if isinstance(scheme, ZeroPoint) else 0
            yield _problem(
                checkpoint,
                counts,
                f"are above {largest}, the largest code",
                counts.out_of_range,
                "convert the layer again",
            )
    yield from other_conventions(checkpoint)


@rule("QM507", "nan-byte", Severity.ERROR, needs=Depth.DATA)
def nan_byte(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A byte of an 8-bit float is its NaN: a scale, or an mxfp8 code.

    `0xFF` in e8m0, `0x7F` and `0xFF` in e4m3.

    ## Why it matters
    Readers differ: NaN spreads, or becomes the largest power of two.

    ## Fix
    Convert the layer again; the tensor had a value that is not finite.
    """
    for counts in _scanned(checkpoint):
        if counts.not_finite and counts.tensor.dtype not in FLOAT:
            yield _problem(
                checkpoint,
                counts,
                "are the NaN of their 8-bit float",
                counts.not_finite,
                "convert the layer again; it had a value that is not finite",
            )


RULES = (not_finite, zero_scale, zero_codes, zero_point_range, nan_byte)
