"""Lines and columns, found from pointers."""

from __future__ import annotations

import pytest

from qmanifest.check import Report
from qmanifest.findings import Finding, Location, Severity
from qmanifest.reports import locations
from qmanifest.reports.locations import resolve_lines

TEXT = '{\n "bits": 4,\n "emb_q4": [\n  "a.weight",\n  "b.weight"\n ]\n}\n'


def resolved(*at: Location, text: str = TEXT) -> tuple[Location, ...]:
    finding = Finding("QM201", Severity.ERROR, "x", None, at)
    report = resolve_lines(Report((finding,), (), ()), {"q.json": text})
    return report.findings[0].at


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ("", 1, 1),
        ("/bits", 2, 2),
        ("/emb_q4/1", 5, 3),
        ("/emb_q4/7", 3, 2),
        ("/group_size", 1, 1),
        ("/emb_q4/1/deeper", 5, 3),
    ],
)
def test_pointer_has_a_place_or_what_it_is_missing_from(
    pointer: str, line: int, column: int
) -> None:
    (at,) = resolved(Location("q.json", pointer))
    assert (at.line, at.column) == (line, column)


@pytest.mark.parametrize(
    "at",
    [
        Location("q.json", "/bits", line=9, column=9),
        Location("q.json"),
        Location("other.json", "/bits"),
        Location(None, "/bits"),
    ],
)
def test_other_locations_stay(at: Location) -> None:
    assert resolved(at) == (at,)


def test_text_that_is_no_json_leaves_pointers_alone() -> None:
    at = Location("q.json", "/bits")
    assert resolved(at, text="!") == (at,) or resolved(at, text="!")[0].line == 1


def test_related_locations_are_resolved_too() -> None:
    first, second = resolved(Location("m"), Location("q.json", "/bits"))
    assert first.line is None
    assert second.line == 2


def test_lookups_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "MAX_POINTERS", 1)
    first, second = resolved(
        Location("q.json", "/emb_q4/0"), Location("q.json", "/bits")
    )
    assert first.line == 4
    assert second.line is None
