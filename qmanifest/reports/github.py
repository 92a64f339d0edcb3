"""The report as GitHub Actions workflow commands, which become annotations.

Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.findings import Severity
from qmanifest.reports.groups import Group, grouped
from qmanifest.reports.places import Reports, as_reports, below, from_here
from qmanifest.reports.printable import printable
from qmanifest.reports.text import summary_line

if TYPE_CHECKING:
    from qmanifest.findings import Finding

_COMMANDS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}


def write_github(reports: Reports, *, full: bool = False) -> str:
    """Write one annotation per finding, and a summary for the log.

    Args:
        reports: one report, or one per path; files are relative to the working folder.
        full: one annotation for every finding; else more than three of one rule
            become one, since a step shows only ten.

    """
    lines = []
    for report in as_reports(reports):
        groups = grouped(report.findings, full=full)
        lines += [_command(group, from_here(report.path)) for group in groups]
        lines.append(printable(f"qmanifest: {report.path}: {summary_line(report)}"))
    return "".join(f"{line}\n" for line in lines)


def _command(group: Group, root: str) -> str:
    """Write `::error file=...,line=...,col=...,title=QM201::message`."""
    finding = group.first
    properties = ",".join(
        f"{key}={_property(str(value))}"
        for key, value in _properties(finding, root).items()
        if value is not None
    )
    message = finding.message if len(group.findings) == 1 else _first(group)
    if finding.hint:
        message = f"{message} (hint: {finding.hint})"
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(message)}"


def _properties(finding: Finding, root: str) -> dict[str, str | int | None]:
    at = finding.at[0] if finding.at else None
    if at is None:
        return {"title": finding.code}
    file = None if at.file is None else below(root, at.file)
    return {"file": file, "line": at.line, "col": at.column, "title": finding.code}


def _first(group: Group) -> str:
    count = len(group.findings)
    return f"{count:,} {'tensors' if group.tensors else 'times'}, first: " + (
        group.first.message
    )


def _data(text: str) -> str:
    """Escape a message; nothing but `%` can be left of what ends a command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    """Escape a property's value."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
