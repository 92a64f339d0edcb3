"""The report for programs: one JSON document, in ASCII, as `schemas/v1/report.json`.

The forms below are that document key by key. A change that a reader could trip over
raises `SCHEMA_VERSION`.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from qmanifest import __version__
from qmanifest.findings import Severity
from qmanifest.reports.places import Reports, as_reports, below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.check import Report
    from qmanifest.findings import Finding, JsonValue, Location

SCHEMA_VERSION: Final = 1
NAME: Final = "qmanifest"


class ToolForm(TypedDict):
    """The program that wrote the report."""

    name: Literal["qmanifest"]
    version: str


class LocationForm(TypedDict):
    """A place: as much of it as is known."""

    file: NotRequired[str]
    """Path from the checkpoint's folder; from the working folder in a report of
    several paths."""
    pointer: NotRequired[str]
    """JSON Pointer into the file; the empty string is the whole document."""
    tensor: NotRequired[str]
    line: NotRequired[int]
    """Counted from 1."""
    column: NotRequired[int]
    """Counted from 1, in characters."""
    byte_range: NotRequired[list[int]]
    """First byte and the byte after the last one, counted from the file's start."""


class FindingForm(TypedDict):
    """One fact that contradicts the config or the format, judged by a rule."""

    code: str
    """The rule's code; codes are never reused."""
    severity: Severity
    message: str
    hint: str | None
    """What to do, as one instruction."""
    at: list[LocationForm]
    """The first location is the primary one; the rest are related."""
    expected: Any
    """What the promise or the format asks for, as any JSON; null where not given."""
    actual: Any
    """What was found, as any JSON; null where not given."""


class SkipForm(TypedDict):
    """A rule that was not run."""

    code: str
    reason: str
    path: NotRequired[str]
    """The checkpoint, in a report of several paths."""


class SummaryForm(TypedDict):
    """Counts over all paths."""

    paths: list[str]
    dialect: str | None
    """The config's dialect; null where there is none, or the paths differ."""
    weights: int
    """Weights that the configs promise."""
    tensors: int
    """Tensors that are stored."""
    packings: list[str]
    """Layouts that packed weights are stored in, as seen."""
    checked: list[str]
    """Codes of the rules that ran, on any path."""
    errors: int
    warnings: int
    notes: int


class ReportForm(TypedDict):
    """What `qmanifest validate --format json` writes."""

    schema_version: Literal[1]
    tool: ToolForm
    findings: list[FindingForm]
    """By path, then severity, then code."""
    skipped: list[SkipForm]
    """What was not checked, and why."""
    summary: SummaryForm


def write_json(reports: Reports) -> str:
    """Write reports as one JSON document with a line end; ASCII only."""
    return json.dumps(report_form(reports), indent=1, allow_nan=False) + "\n"


def report_form(reports: Reports) -> ReportForm:
    """Give reports as the JSON document's value."""
    several = as_reports(reports)
    prefixed = len(several) > 1
    return ReportForm(
        schema_version=SCHEMA_VERSION,
        tool=ToolForm(name=NAME, version=__version__),
        findings=[
            _finding(finding, report.path if prefixed else "")
            for report in several
            for finding in report.findings
        ],
        skipped=[skip for report in several for skip in _skips(report, prefixed)],
        summary=_summary(several),
    )


def plain(value: JsonValue) -> JsonValue:
    """Give a value as JSON can say it: numbers that are not finite become text."""
    if isinstance(value, float) and not isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _finding(finding: Finding, root: str) -> FindingForm:
    return FindingForm(
        code=finding.code,
        severity=finding.severity,
        message=finding.message,
        hint=finding.hint,
        at=[_location(at, root) for at in finding.at],
        expected=plain(finding.expected),
        actual=plain(finding.actual),
    )


def _location(at: Location, root: str) -> LocationForm:
    """Write the keys that are known."""
    form = LocationForm()
    if at.file is not None:
        form["file"] = below(root, at.file) if root else at.file
    if at.pointer is not None:
        form["pointer"] = at.pointer
    if at.tensor is not None:
        form["tensor"] = at.tensor
    if at.line is not None:
        form["line"] = at.line
    if at.column is not None:
        form["column"] = at.column
    if at.byte_range is not None:
        form["byte_range"] = list(at.byte_range)
    return form


def _skips(report: Report, prefixed: bool) -> list[SkipForm]:  # noqa: FBT001 - a fact
    forms = [SkipForm(code=skip.code, reason=skip.reason) for skip in report.skipped]
    if prefixed:
        for form in forms:
            form["path"] = report.path
    return forms


def _summary(reports: Sequence[Report]) -> SummaryForm:
    dialects = {report.dialect for report in reports}
    checked = dict.fromkeys(code for report in reports for code in report.checked)
    errors, warnings, notes = (
        sum(report.count(severity) for report in reports) for severity in Severity
    )
    return SummaryForm(
        paths=[report.path for report in reports],
        dialect=dialects.pop() if len(dialects) == 1 else None,
        weights=sum(report.weights for report in reports),
        tensors=sum(report.tensors for report in reports),
        packings=sorted({pack for report in reports for pack in report.packings}),
        checked=list(checked),
        errors=errors,
        warnings=warnings,
        notes=notes,
    )
