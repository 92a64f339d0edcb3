"""What `qmanifest validate` does, however its options were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.cli.checking import Request, known_prefixes
from qmanifest.cli.console import deliver, wants_color
from qmanifest.cli.values import (
    FailOn,
    Format,
    UsageError,
    dialect_id,
    listed,
    placed,
    require,
)
from qmanifest.reading.collector import collector_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from qmanifest.check import Report


def run(
    paths: Sequence[Path] | None = None,
    *,
    config: Path | None = None,
    config_only: Path | None = None,
    component: Sequence[str] | None = None,
    deep: bool = False,
    base: Path | None = None,
    dialect: str | None = None,
    report_format: Format = Format.TEXT,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    fail_on: FailOn = FailOn.ERROR,
    output: Path | None = None,
    full: bool = False,
) -> int:
    """Check, deliver the report, and give the exit code; see `cli.validate`.

    Raises:
        UsageError: the options contradict each other, or nothing was checked.

    """
    targets = _targets(paths or [], config_only)
    require(*targets, config, base)
    request = Request(
        config=config,
        components=placed(component),
        base=base,
        dialect=dialect_id(dialect),
        deep=deep,
        select=known_prefixes(listed(select)),
        ignore=known_prefixes(listed(ignore)),
        config_only=config_only is not None,
    )
    with collector_paused():
        reports = [request.run(target) for target in targets]
        deliver(_writer(report_format, output, full)(reports), output)
    return _exit_code(reports, fail_on)


def _targets(paths: Sequence[Path], config_only: Path | None) -> Sequence[Path]:
    """List what to check: paths, or one config alone."""
    if config_only is None:
        if paths:
            return paths
        raise UsageError("nothing to check. Name a PATH, or a config by --config-only.")
    if paths:
        raise UsageError("--config-only takes no PATH. Leave one of the two out.")
    return [config_only]


def _writer(
    report_format: Format, output: Path | None, full: bool
) -> Callable[[Sequence[Report]], str]:
    """Pick a writer, with what formats for people let one choose."""
    from qmanifest import reports as writers

    if report_format is Format.TEXT:
        color = wants_color(output)
        return lambda reports: writers.write_text(reports, color=color, full=full)
    if report_format is Format.GITHUB:
        return lambda reports: writers.write_github(reports, full=full)
    return writers.WRITERS[report_format]


def _exit_code(reports: Sequence[Report], fail_on: FailOn) -> int:
    """Tell the result as an exit code; where no rule ran there is none."""
    from qmanifest.findings import Severity

    for report in reports:
        if not report.checked:
            reasons = ", ".join(dict.fromkeys(skip.reason for skip in report.skipped))
            raise UsageError(f"{report.path}: nothing was checked: {reasons}")
    if fail_on is FailOn.NEVER:
        return 0
    return int(any(report.reaches(Severity(fail_on)) for report in reports))
