"""Tensors must cover the data of a file exactly once."""

from __future__ import annotations

import pytest

from qmanifest.findings import Defect, DefectKind
from qmanifest.reading.capped import REPORTED
from qmanifest.reading.header_layout import layout_defects
from qmanifest.tensors import TensorInfo


def defects(**ranges: tuple[int, int]) -> tuple[Defect, ...]:
    tensors = [
        TensorInfo(name, "U8", (end - begin,), begin, end, "f")
        for name, (begin, end) in ranges.items()
    ]
    return layout_defects(tensors, "f", 10)


@pytest.mark.parametrize(
    "ranges",
    [
        {},
        {"a": (10, 14)},
        {"b": (14, 20), "a": (10, 14)},
        {"a": (10, 14), "e": (14, 14), "f": (14, 14), "b": (14, 20)},
        {"e": (10, 10), "a": (10, 14), "z": (14, 14)},
    ],
)
def test_seamless_tensors_are_fine(ranges: dict[str, tuple[int, int]]) -> None:
    assert defects(**ranges) == ()


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (
            {"a": (10, 14), "b": (22, 30)},
            "8 bytes between tensor 'a' (bytes 10 to 14) and tensor 'b' (bytes 22",
        ),
        ({"a": (11, 14)}, "1 byte between the header and tensor 'a'"),
        (
            {"a": (10, 14), "b": (12, 30)},
            "'b' (bytes 12 to 30) overlaps tensor 'a' (bytes 10 to 14) in 2 bytes",
        ),
        (
            {"a": (10, 30), "b": (12, 15), "c": (30, 31)},
            "'b' (bytes 12 to 15) overlaps tensor 'a' (bytes 10 to 30) in 3 bytes",
        ),
        ({"a": (10, 14), "e": (12, 12)}, "'e' (bytes 12 to 12) overlaps tensor 'a'"),
        ({"a": (10, 14), "e": (20, 20)}, "6 bytes between tensor 'a'"),
    ],
)
def test_a_seam_names_both_tensors(
    ranges: dict[str, tuple[int, int]], message: str
) -> None:
    (defect,) = defects(**ranges)
    assert defect.kind is DefectKind.OVERLAP_OR_GAP
    assert message in defect.problem.message
    first = defect.problem.at[0]
    assert first.tensor is not None
    assert first.byte_range == ranges[first.tensor]
    assert len(defect.problem.at) == min(len(ranges), 2)


def test_many_seams_are_counted() -> None:
    found = defects(**{f"o{n}": (10, 99) for n in range(5001)})
    assert len(found) == REPORTED + 1
    assert "overlaps tensor 'o0'" in found[7].problem.message
    assert f"{5000 - REPORTED:,} more" in found[-1].problem.message
