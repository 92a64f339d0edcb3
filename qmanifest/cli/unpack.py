"""`qmanifest unpack`: rebuild a dense checkpoint from a packed one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say
from qmanifest.cli.options import (
    ComponentOption,
    ConfigOption,
    ForceOption,
    OutOption,
    ShardSizeOption,
)
from qmanifest.cli.progress import ProgressLine
from qmanifest.cli.values import placed, require, size_in_bytes

EXAMPLES: Final = """\
  qmanifest unpack ./model-8bit -o ./model-bf16
  qmanifest unpack ./model-8bit -o ./model-f32 --dtype float32 --shard-size 2GB"""

PathArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="PATH", help="The packed checkpoint.")
]


class Dtype(StrEnum):
    """Floats that a dense checkpoint can be in."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"


def unpack(
    path: PathArgument,
    *,
    out: OutOption,
    config: ConfigOption = None,
    component: ComponentOption = None,
    dtype: Annotated[
        Dtype | None,
        typer.Option(help="Of all floats; without it each weight has its format's."),
    ] = None,
    shard_size: ShardSizeOption = "5GB",
    force: ForceOption = False,
) -> None:
    """Rebuild the dense checkpoint that a packed one stands for."""
    from qmanifest.converting.unpack import unpack_checkpoint

    require(path, config)
    with ProgressLine() as progress:
        unpack_checkpoint(
            path,
            out,
            config=config,
            components=placed(component),
            dtype=dtype.value if dtype else None,
            shard_size=size_in_bytes(shard_size),
            force=force,
            progress=progress,
        )
    say(f"wrote {out}")
