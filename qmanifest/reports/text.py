"""The report for people: one line per finding, then its hint, and a summary at the end.

The line is `quant_config.json:12:5 #/emb_q4/1: QM201 error: ` and the message.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from qmanifest.findings import Severity
from qmanifest.reports.groups import Group, grouped
from qmanifest.reports.places import Reports, as_reports, shown, shown_location
from qmanifest.reports.printable import printable
from qmanifest.reports.shorten import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.check import Report, Skip

LIMIT: Final = 390
"""Characters of a line, colours not counted."""
_NAMED: Final = 240
"""Characters that the names of a group's other tensors may take."""
_RUN: Final = 3
"""Codes in a row that are written as a range."""
_COLORS: Final = {
    Severity.ERROR: "\x1b[1;31m",
    Severity.WARNING: "\x1b[1;33m",
    Severity.NOTE: "\x1b[1;36m",
}
_PLAIN: Final = "\x1b[0m"


def write_text(reports: Reports, *, color: bool = False, full: bool = False) -> str:
    """Write reports as lines for people; every line is safe to show on a terminal.

    Args:
        reports: one report, or one per path; then each file's path starts with its.
        color: mark severities with ANSI colours.
        full: one line for every finding, with related places; else more than three
            of one rule become one line.

    """
    several = as_reports(reports)
    lines: list[str] = []
    for report in several:
        root = report.path if len(several) > 1 else ""
        lines += _findings(report, root, color=color, full=full)
    for report in several:
        where = f"{report.path}: " if len(several) > 1 else ""
        if report.skipped:
            lines.append(_line(f"{where}skipped: {skipped_line(report.skipped)}"))
        lines.append(_line(f"{where}{summary_line(report)}"))
    return "".join(f"{line}\n" for line in lines)


def summary_line(report: Report) -> str:
    """Count findings, tensors and weights in one line."""
    errors, warnings, notes = (_counted(report, severity) for severity in Severity)
    dialect = f"dialect {report.dialect}" if report.dialect else "no dialect"
    packed = f" in {' and '.join(report.packings)}" if report.packings else ""
    return (
        f"{errors}, {warnings}, {notes}; {_count(report.tensors, 'tensor')}, "
        f"{_count(report.weights, 'weight')}{packed}, {dialect}"
    )


def skipped_line(skipped: Sequence[Skip]) -> str:
    """List the skipped rules by reason: `QM501-QM507 (only with --deep)`."""
    by_reason: dict[str, list[str]] = {}
    for skip in skipped:
        by_reason.setdefault(skip.reason, []).append(skip.code)
    return "; ".join(
        f"{', '.join(_ranges(codes))} ({reason})" for reason, codes in by_reason.items()
    )


def _findings(report: Report, root: str, *, color: bool, full: bool) -> Iterator[str]:
    """Write every group; a hint that several share stands after the last of them."""
    groups: list[Group | None] = [*grouped(report.findings, full=full), None]
    for group, following in pairwise(groups):
        assert group is not None
        first = group.first
        yield _finding(group, root, color=color)
        if len(group.findings) > 1 and (names := _other_names(group)):
            yield names
        if full:
            for place in first.at[1:]:
                yield _line(f"  see: {shown_location(place, root)}")
        repeated = following is not None and following.first.hint == first.hint
        brief = first.severity is Severity.NOTE and not full
        if first.hint and not repeated and not brief:
            yield _line(f"  hint: {first.hint}")


def _finding(group: Group, root: str, *, color: bool) -> str:
    """Write the line of one finding, or of the first of a group."""
    finding = group.first
    place = f"{shown(finding, root)}: "
    rest = f"{group.title}: "
    message = shorten(printable(finding.message), LIMIT - len(place) - len(rest))
    if color:
        rest = f"{_COLORS[finding.severity]}{rest}{_PLAIN}"
    return f"{place}{rest}{message}"


def _other_names(group: Group) -> str | None:
    """Name the tensors of a group after the first one, as many as fit."""
    names = [printable(repr(name)) for name in group.tensors[1:]]
    fitting, length = 0, 0
    for name in names:
        length += len(name) + 2
        if length > _NAMED:
            break
        fitting += 1
    if not fitting:
        return None
    more = len(names) - fitting
    end = f" and {more:,} more (--full lists all)" if more else ""
    return _line(f"  also: {', '.join(names[:fitting])}{end}")


def _line(text: str) -> str:
    return shorten(printable(text), LIMIT)


def _counted(report: Report, severity: Severity) -> str:
    return _count(report.count(severity), severity.value)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _ranges(codes: Sequence[str]) -> Iterator[str]:
    """Write neighbouring codes as a range, where that is shorter."""
    numbered = enumerate(sorted(codes))
    for _, group in groupby(numbered, lambda item: int(item[1][2:]) - item[0]):
        run = [code for _, code in group]
        if len(run) < _RUN:
            yield from run
        else:
            yield f"{run[0]}-{run[-1]}"
