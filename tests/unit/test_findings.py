"""Facts: places, severities, JSON Pointers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.findings import (
    Defect,
    DefectKind,
    Finding,
    Location,
    Problem,
    Severity,
    json_pointer,
    json_pointers,
)

# RFC 6901, section 5: the keys of its example document and their pointers
RFC_6901 = {
    "foo": "/foo",
    "": "/",
    "a/b": "/a~1b",
    "c%d": "/c%d",
    "e^f": "/e^f",
    "g|h": "/g|h",
    "i\\j": "/i\\j",
    'k"l': '/k"l',
    " ": "/ ",
    "m~n": "/m~0n",
}


@pytest.mark.parametrize(("key", "pointer"), RFC_6901.items())
def test_pointers_of_the_standard(key: str, pointer: str) -> None:
    assert json_pointer(key) == pointer


def test_pointers() -> None:
    assert json_pointer() == ""
    assert json_pointer("a", 0, "~1") == "/a/0/~01"


@given(parts=st.lists(st.text(), max_size=4))
def test_pointers_can_be_read_back(parts: list[str]) -> None:
    pointer = json_pointer(*parts)
    found = [
        part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]
    ]
    assert found == parts


@pytest.mark.parametrize(
    ("severity", "reaches"),
    [
        (Severity.ERROR, {Severity.ERROR, Severity.WARNING, Severity.NOTE}),
        (Severity.WARNING, {Severity.WARNING, Severity.NOTE}),
        (Severity.NOTE, {Severity.NOTE}),
    ],
)
def test_severities_are_ordered(severity: Severity, reaches: set[Severity]) -> None:
    assert {least for least in Severity if severity.reaches(least)} == reaches


def test_facts_are_plain_values() -> None:
    problem = Problem("x", (Location("f", "/a", "t", (0, 8), 1, 2),), 1, [2], "do")
    assert problem == Problem(
        "x", (Location("f", "/a", "t", (0, 8), 1, 2),), 1, [2], "do"
    )
    assert Defect(DefectKind.LABEL, problem) != Defect(DefectKind.PROVENANCE, problem)
    finding = Finding("QM201", Severity.ERROR, "x")
    assert (finding.hint, finding.at, finding.expected, finding.actual) == (
        None,
        (),
        None,
        None,
    )
    with pytest.raises(AttributeError):
        finding.code = "QM202"  # type: ignore[misc] # frozen is what is tested


def test_kinds_are_unlike() -> None:
    assert len({kind.value for kind in DefectKind}) == len(DefectKind)


@given(parts=st.lists(st.text() | st.sampled_from(["~", "a/b"]), max_size=4))
def test_many_pointers_are_those_of_each(parts: list[str]) -> None:
    each = [json_pointer("a/b", part) for part in parts]
    assert json_pointers(json_pointer("a/b"), parts) == each
