"""Every case finds what it says it should, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support import cases

from qmanifest.dialects import recognize
from qmanifest.findings import Severity
from qmanifest.reports import WRITERS

if TYPE_CHECKING:
    from pathlib import Path

    from support.cases import Case

VALID, INVALID = cases.load("valid"), cases.load("invalid")
each_case = pytest.mark.parametrize(
    "case", [*VALID.values(), *INVALID.values()], ids=[*VALID, *INVALID]
)
each_valid_case = pytest.mark.parametrize("case", VALID.values(), ids=VALID)


@each_case
def test_finds_what_it_should_and_no_more(case: Case, tmp_path: Path) -> None:
    _, report = case.run(tmp_path)
    assert sorted(map(cases.line, report.findings)) == sorted(case.expect)
    said = [f"{each.message} | {each.hint}" for each in report.findings]
    for text in case.says:
        assert any(text in each for each in said), said


@each_case
def test_every_format_can_show_it(case: Case, tmp_path: Path) -> None:
    _, report = case.run(tmp_path)
    for name, write in WRITERS.items():
        text = write(report)
        for finding in report.findings:
            assert finding.code in text, name
        if name in {"json", "sarif"}:
            json.loads(text)


@each_case
def test_messages_are_about_the_checkpoint(case: Case, tmp_path: Path) -> None:
    _, report = case.run(tmp_path)
    for finding in report.findings:
        assert finding.at, "a finding has a place"
        assert str(tmp_path) not in f"{finding.message} {finding.hint} {finding.at}"
        assert not finding.message.endswith(".")


@each_valid_case
def test_valid_is_not_even_warned_of(case: Case, tmp_path: Path) -> None:
    checkpoint, report = case.run(tmp_path)
    assert not report.reaches(Severity.WARNING)
    if checkpoint.config is not None:
        assert checkpoint.config.object is not None
        assert len(recognize(checkpoint.config.object)) == 1


def test_invalid_cases_expect_something() -> None:
    assert not [name for name, case in INVALID.items() if not case.expect]


def test_names_are_unique() -> None:
    assert not VALID.keys() & INVALID.keys()
