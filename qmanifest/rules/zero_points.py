"""QM506: zero points of symmetric weights that were stored in another convention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import Location, Problem, Severity
from qmanifest.layouts import I32_LSB
from qmanifest.rules.fitting import fits
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.fitting import Fit


def other_conventions(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report symmetric weights whose packed zero points are not the middle code."""
    for fit in fits(checkpoint):
        scheme = fit.weight.scheme
        if not isinstance(scheme, Integer) or not scheme.zero.symmetric:
            continue
        stored = fit.bytes_of("zeros") if scheme.zero.pack == I32_LSB.id else None
        if stored and fit.fault is None:
            yield from _against(checkpoint, fit, scheme, stored)


def _against(
    checkpoint: Checkpoint, fit: Fit, scheme: Integer, stored: bytes
) -> Iterator[Problem]:
    """Hold stored zero points against the middle code, in either convention."""
    middle, zeros = 1 << (scheme.bits - 1), fit.stored["zeros"]
    expected = middle - scheme.zero.plus
    if _is_constant(stored, expected, scheme.bits):
        return
    other = middle - (1 - scheme.zero.plus)
    at = (
        Location(zeros.file, tensor=zeros.name, byte_range=(zeros.begin, zeros.end)),
        Location(checkpoint.config_name, fit.weight.pointer),
    )
    if _is_constant(stored, other, scheme.bits):
        form = "gptq_v2" if scheme.zero.plus else "gptq"
        yield Problem(
            f"{zeros.name!r} stores {other} everywhere, which is read as "
            f"{other + scheme.zero.plus}; a symmetric weight of {scheme.bits} bits "
            f"has {middle}, stored as {expected}: every weight is off by one step",
            at,
            expected=expected,
            actual=other,
            hint=f"this looks like checkpoint_format {form!r}; declare it",
            severity=Severity.WARNING,
        )
    else:
        yield Problem(
            f"{zeros.name!r} ({zeros}) does not store {expected} everywhere, as a "
            f"symmetric weight of {scheme.bits} bits does",
            at,
            expected=expected,
            hint="declare sym false, or convert the layer again",
            severity=Severity.WARNING,
        )


def _is_constant(stored: bytes, code: int, bits: int) -> bool:
    """Whether a bit stream is one code over and over."""
    eight = sum(code << (place * bits) for place in range(8)).to_bytes(bits, "little")
    return stored == eight * (len(stored) // bits)
