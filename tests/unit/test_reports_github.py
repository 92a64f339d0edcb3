"""Workflow commands: their properties and what must be escaped in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmanifest.check import Report
from qmanifest.findings import Finding, Location, Severity
from qmanifest.reports.github import write_github

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

AT = Location("q.json", "/emb_q4/1", "b.weight", None, 12, 5)
FINDING = Finding("QM201", Severity.ERROR, "no b", None, (AT,))


def first_line(*findings: Finding, full: bool = False) -> str:
    report = Report(findings, (), ("QM201",), "ckpt", "q4-lists", 1, 2)
    return write_github(report, full=full).split("\n")[0]


def test_annotation() -> None:
    assert first_line(FINDING) == (
        "::error file=ckpt/q.json,line=12,col=5,title=QM201::no b"
    )


def test_severities_have_their_commands() -> None:
    warning = replace(FINDING, severity=Severity.WARNING, hint="convert")
    assert first_line(warning).startswith("::warning ")
    assert first_line(warning).endswith("::no b (hint: convert)")
    assert first_line(replace(FINDING, severity=Severity.NOTE)).startswith("::notice ")


def test_nothing_ends_a_command_or_a_property_early() -> None:
    at = Location("a,line=1::x%.json")
    line = first_line(replace(FINDING, at=(at,), message="50%\n::error::injected\r"))
    assert line == (
        "::error file=ckpt/a%2Cline=1%3A%3Ax%25.json,title=QM201::"
        r"50%25\n::error::injected\r"
    )


def test_many_of_a_rule_are_one_annotation_unless_full() -> None:
    findings = [replace(FINDING, message=str(number)) for number in range(4)]
    assert first_line(*findings).endswith("::4 times, first: 0")
    assert first_line(*findings, full=True).endswith("::0")


def test_files_are_named_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inside = Report((FINDING,), (), (), str(tmp_path / "a" / "b"))
    assert write_github(inside).startswith("::error file=a/b/q.json,")
    outside = Report((FINDING,), (), (), "/elsewhere/b")
    assert write_github(outside).startswith("::error file=/elsewhere/b/q.json,")


def test_a_finding_without_location_has_its_title() -> None:
    assert first_line(replace(FINDING, at=())) == "::error title=QM201::no b"


def test_summary_is_no_command() -> None:
    text = write_github(Report((), (), (), "::set-env name=x::"))
    assert text.startswith("qmanifest: ::set-env name=x::: 0 errors")
