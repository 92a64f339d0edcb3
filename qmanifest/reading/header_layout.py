"""Whether the tensors of a file cover its data exactly, once, and to the end."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from qmanifest.findings import Defect, DefectKind, Location, Problem
from qmanifest.reading.capped import capped
from qmanifest.reading.foreign import recognise
from qmanifest.reading.wording import count, listing, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmanifest.tensors import TensorInfo


class _Seam(msgspec.Struct, frozen=True):
    """Two tensors in file order that do not meet."""

    before: TensorInfo | None
    """The tensor that reaches furthest so far; None before the first one."""
    after: TensorInfo
    at: int
    """Where the data before `after` ends."""


def layout_defects(
    tensors: Sequence[TensorInfo], file: str, data_start: int
) -> tuple[Defect, ...]:
    """Find tensors that overlap, and bytes between tensors that none of them has."""
    if _is_chain(tensors, data_start):
        return ()
    seams = list(_seams(tensors, data_start))
    return capped((_seam_defect(seam, file) for seam in seams), len(seams))


def _is_chain(tensors: Iterable[TensorInfo], position: int) -> bool:
    """Whether every tensor begins where the one before it in the header ends."""
    for tensor in tensors:
        if tensor.begin != position:
            return False
        position = tensor.end
    return True


def _seams(tensors: Iterable[TensorInfo], position: int) -> Iterable[_Seam]:
    before = None
    for tensor in sorted(tensors, key=attrgetter("begin", "end")):
        if tensor.begin != position:
            yield _Seam(before, tensor, position)
        if tensor.begin == position or tensor.end > position:
            position, before = tensor.end, tensor


def _seam_defect(seam: _Seam, file: str) -> Defect:
    after, before = seam.after, seam.before
    where = "the header" if before is None else f"tensor {_placed(before)}"
    if after.begin < seam.at:
        shared = min(after.end, seam.at) - after.begin
        message = f"tensor {_placed(after)} overlaps {where} in {count(shared, 'byte')}"
    else:
        gap = after.begin - seam.at
        message = (
            f"{count(gap, 'byte')} between {where} and tensor {_placed(after)} "
            "belong to no tensor"
        )
    places = [_location(after, file)] + ([_location(before, file)] if before else [])
    return Defect(
        DefectKind.OVERLAP_OR_GAP,
        Problem(
            message,
            tuple(places),
            expected=seam.at,
            actual=after.begin,
            hint="write the file again: every tensor must begin where another ends",
        ),
    )


def _placed(tensor: TensorInfo) -> str:
    return f"{quoted(tensor.name)} (bytes {tensor.begin:,} to {tensor.end:,})"


def _location(tensor: TensorInfo, file: str) -> Location:
    return Location(
        file=file, tensor=tensor.name, byte_range=(tensor.begin, tensor.end)
    )


def truncated(
    tensors: Sequence[TensorInfo], file: str, size: int, expected: int
) -> Defect:
    """Report a file of `size` bytes whose tensors reach to `expected`."""
    lost = [tensor for tensor in tensors if tensor.end > size]
    whole_file = Location(file=file, byte_range=(size, expected))
    return Defect(
        DefectKind.TRUNCATED,
        Problem(
            f"the file is cut: {count(expected, 'byte')} expected, {size:,} found; "
            f"{len(lost):,} of {count(len(tensors), 'tensor')} lost in whole or part: "
            f"{listing([tensor.name for tensor in lost])}",
            (whole_file, *(_location(tensor, file) for tensor in lost)),
            expected=expected,
            actual=size,
            hint="download or write the file again",
        ),
    )


def trailing(tail: bytes, file: str, size: int, expected: int) -> Defect:
    """Report bytes behind the last tensor; `tail` is how they begin."""
    found = recognise(tail)
    what = f", which begin like {found[0]}" if found else ""
    return Defect(
        DefectKind.TRAILING_BYTES,
        Problem(
            f"{count(size - expected, 'byte')} behind the last tensor belong to none: "
            f"{expected:,} bytes expected, {size:,} found{what}",
            (Location(file=file, byte_range=(expected, size)),),
            expected=expected,
            actual=size,
            hint="write the file again; trust no file that hides data",
        ),
    )
