"""QM506: packed zero points in another convention, or in one that readers differ in.

Rows of packed codes are taken as whole numbers here, so that it costs no numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.findings import Location, Problem, Severity
from qmanifest.layouts import I32_LSB, I32_PLANES
from qmanifest.rules.fitting import fits
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.fit import Fit

UNIT: Final = 32
"""Codes that planes pack together."""


def other_conventions(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Report zero points that are not the middle code, or whose sum has no room."""
    for fit in fits(checkpoint):
        scheme = fit.weight.scheme
        if not isinstance(scheme, Integer) or not fit.shape or fit.fault:
            continue
        zero, streams = scheme.zero, scheme.zero.pack == I32_LSB.id
        if zero.symmetric and (streams or zero.pack == I32_PLANES.id):
            yield from _against(checkpoint, fit, scheme)
        elif zero.plus and streams:
            yield from _without_room(checkpoint, fit, scheme)


def _against(checkpoint: Checkpoint, fit: Fit, scheme: Integer) -> Iterator[Problem]:
    """Hold stored zero points against the middle code, in either convention."""
    rows = _rows(fit)
    middle, zero = 1 << (scheme.bits - 1), scheme.zero
    expected, other = middle - zero.plus, middle - (1 - zero.plus)
    if not rows or _is_constant(rows, expected, fit, scheme):
        return
    name = fit.stored["zeros"].name
    if _is_constant(rows, other, fit, scheme):
        form = "gptq_v2" if zero.plus else "gptq"
        yield Problem(
            f"{name!r} stores {other} everywhere, which is read as "
            f"{other + zero.plus}; a symmetric weight of {scheme.bits} bits "
            f"has {middle}, stored as {expected}: every weight is off by one step",
            _places(checkpoint, fit),
            expected=expected,
            actual=other,
            hint=f"this looks like checkpoint_format {form!r}; declare it",
            severity=Severity.WARNING,
        )
    else:
        yield Problem(
            f"{name!r} ({fit.stored['zeros']}) does not store {expected} everywhere, "
            f"as a symmetric weight of {scheme.bits} bits does",
            _places(checkpoint, fit),
            expected=expected,
            hint="declare sym false, or convert the layer again",
            severity=Severity.WARNING,
        )


def _without_room(
    checkpoint: Checkpoint, fit: Fit, scheme: Integer
) -> Iterator[Problem]:
    """Count zero points that are all ones, to which readers add one."""
    bits, outputs = scheme.bits, _outputs(fit)
    lowest = _repeated(1, bits, outputs)
    found = 0
    rows = _rows(fit)
    for row in rows:
        ones = row
        for place in range(1, bits):
            ones &= row >> place
        found += (ones & lowest).bit_count()
    if found:
        largest = (1 << bits) - 1
        yield Problem(
            f"{found:,} of {len(rows) * outputs:,} zero points in "
            f"{fit.stored['zeros'].name!r} are stored as {largest}, to which readers "
            f"add one: some take it for 0, others for {largest + 1}",
            _places(checkpoint, fit),
            expected=0,
            actual=found,
            hint="store zero points as they are (checkpoint_format 'gptq_v2'), or "
            "quantize symmetrically",
            severity=Severity.WARNING,
        )


def _places(checkpoint: Checkpoint, fit: Fit) -> tuple[Location, ...]:
    zeros = fit.stored["zeros"]
    octets = (zeros.begin, zeros.end)
    return (
        Location(zeros.file, tensor=zeros.name, byte_range=octets),
        Location(checkpoint.config_name, fit.weight.pointer),
    )


def _rows(fit: Fit) -> list[int]:
    """Read the zero points of every group as one whole number."""
    stored = fit.bytes_of("zeros")
    size = 4 * fit.stored["zeros"].shape[-1] if stored else 0
    if not stored or not size:
        return []
    starts = range(0, len(stored), size)
    return [int.from_bytes(stored[at : at + size], "little") for at in starts]


def _outputs(fit: Fit) -> int:
    return (fit.shape or (0, 0))[-2]


def _is_constant(rows: list[int], code: int, fit: Fit, scheme: Integer) -> bool:
    """Whether all rows are one code over and over; bits after the last are ignored."""
    count, bits = _outputs(fit), scheme.bits
    if scheme.zero.pack == I32_PLANES.id:
        unit = _in_planes(code, bits)
        whole = _repeated(unit, bits * UNIT, count // UNIT)
    else:
        whole = _repeated(code, bits, count)
    used = (1 << (bits * count)) - 1
    return all(row & used == whole for row in rows)


def _repeated(code: int, bits: int, count: int) -> int:
    """Put a code of `bits` into a whole number `count` times."""
    used, one = (1 << (bits * count)) - 1, (1 << bits) - 1
    return code * (used // one)


def _in_planes(code: int, bits: int) -> int:
    """Pack a code 32 times as `i32-planes` does."""
    packed, at, low = 0, 0, 0
    for width in (8, 4, 2, 1):
        if bits & width:
            part = (code >> low) & ((1 << width) - 1)
            packed |= _repeated(part, width, UNIT) << at
            at, low = at + width * UNIT, low + width
    return packed
