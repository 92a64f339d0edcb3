"""`qmanifest validate`: check checkpoints against their configs.

`cli.plain` reads the same options without typer; a new one is named there too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from qmanifest.cli.options import BaseOption, ComponentOption, ConfigOption
from qmanifest.cli.values import FailOn, Format

EXAMPLES: Final = """\
  qmanifest validate ./model
  qmanifest validate ./model --deep --base ./model-bf16
  qmanifest validate --config-only quant_config.json
  qmanifest validate ./model --component rr=./reranker --format sarif -o out.sarif
  qmanifest validate ./a ./b --ignore QM9,QM210 --fail-on warning"""


PathsArgument: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Folders of shards, or single .safetensors files. "
        "A .json file is checked as a config alone.",
        show_default=False,
    ),
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
    from qmanifest.cli.validating import run

    code = run(
        paths,
        config=config,
        config_only=config_only,
        component=component,
        deep=deep,
        base=base,
        dialect=dialect,
        report_format=report_format,
        select=select,
        ignore=ignore,
        fail_on=fail_on,
        output=output,
        full=full,
    )
    raise typer.Exit(code)
