"""The options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from qmanifest.cli.values import Listing

ComponentOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PATH",
        help="Where a component's weights are. Repeatable.",
        show_default=False,
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The config, where PATH does not hold it."),
]
BaseOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="CHECKPOINT", help="The 16-bit original, as a witness."),
]
OutOption: TypeAlias = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder to write.")
]
ShardSizeOption: TypeAlias = Annotated[
    str, typer.Option(metavar="SIZE", help="Most tensor bytes of a shard.")
]
ForceOption: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace what is in the folder.")
]
ListingOption: TypeAlias = Annotated[
    Listing, typer.Option("--format", help="How to show it.")
]
