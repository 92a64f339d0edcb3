"""`qmanifest validate`: check checkpoints against their configs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import deliver, wants_color
from qmanifest.cli.options import (
    BaseOption,
    ComponentOption,
    UsageError,
    dialect_id,
    listed,
    placed,
    require,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from qmanifest.check import Report

EXAMPLES: Final = """\
  qmanifest validate ./model
  qmanifest validate ./model --deep --base ./model-bf16
  qmanifest validate --config-only quant_config.json
  qmanifest validate ./model --component rr=./reranker --format sarif -o out.sarif
  qmanifest validate ./a ./b --ignore QM9,QM210 --fail-on warning"""


class Format(StrEnum):
    """Who reads the report."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


class FailOn(StrEnum):
    """What makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


PathsArgument: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Folders of shards, or single .safetensors files. "
        "A .json file is checked as a config alone.",
        show_default=False,
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The config, where PATH does not hold it."),
]
ConfigOnlyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Check this config without any weights."),
]
DeepOption: TypeAlias = Annotated[
    bool, typer.Option("--deep", help="Read the tensors' bytes too.")
]
DialectOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="ID", help="Read the config as this dialect.")
]
FormatOption: TypeAlias = Annotated[
    Format, typer.Option("--format", help="Who reads the report.")
]
SelectOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        help="Run these rules only: starts of codes, with commas between. Repeatable.",
        show_default=False,
    ),
]
IgnoreOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        help="Leave these rules out; wins over --select. Repeatable.",
        show_default=False,
    ),
]
FailOnOption: TypeAlias = Annotated[
    FailOn, typer.Option(help="Least severity that makes the exit code 1.")
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the report there."),
]
FullOption: TypeAlias = Annotated[
    bool, typer.Option("--full", help="List every finding, grouping none.")
]


def validate(
    paths: PathsArgument = None,
    *,
    config: ConfigOption = None,
    config_only: ConfigOnlyOption = None,
    component: ComponentOption = None,
    deep: DeepOption = False,
    base: BaseOption = None,
    dialect: DialectOption = None,
    report_format: FormatOption = Format.TEXT,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    fail_on: FailOnOption = FailOn.ERROR,
    output: OutputOption = None,
    full: FullOption = False,
) -> None:
    """Check that checkpoints are what their configs say.

    Exit code 0: no findings at or above --fail-on. 1: there are some. 2: wrong usage,
    or nothing could be checked.
    """
    from qmanifest.cli.checking import Request, known_prefixes
    from qmanifest.reading.collector import collector_paused

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
    raise typer.Exit(_exit_code(reports, fail_on))


def _targets(paths: list[Path], config_only: Path | None) -> list[Path]:
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
    from qmanifest.reports import WRITERS, write_github, write_text

    if report_format is Format.TEXT:
        color = wants_color(output)
        return lambda reports: write_text(reports, color=color, full=full)
    if report_format is Format.GITHUB:
        return lambda reports: write_github(reports, full=full)
    return WRITERS[report_format]


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
