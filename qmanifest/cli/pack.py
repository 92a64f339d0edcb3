"""`qmanifest pack`: quantize a 16-bit checkpoint as a config says."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say
from qmanifest.cli.options import (
    ComponentOption,
    ForceOption,
    OutOption,
    ShardSizeOption,
)
from qmanifest.cli.progress import ProgressLine
from qmanifest.cli.values import placed, require, size_in_bytes

EXAMPLES: Final = """\
  qmanifest pack ./model-bf16 --config quant_config.json -o ./model-8bit
  qmanifest pack ./emb --config quant_config.json --component rr=./rr -o ./out"""

SourceArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="The 16-bit checkpoint.")
]
ConfigOption: TypeAlias = Annotated[
    Path, typer.Option(metavar="FILE", help="The config that says how.")
]


class Dtype(StrEnum):
    """Floats that scales and kept tensors can be."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


def pack(
    source: SourceArgument,
    *,
    config: ConfigOption,
    out: OutOption,
    component: ComponentOption = None,
    shard_size: ShardSizeOption = "5GB",
    dtype: Annotated[
        Dtype | None,
        typer.Option(help="Of scales and kept tensors; without it as the config says."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Quantize a 16-bit checkpoint as a config says.

    The config is written beside the shards, last of all.
    """
    from qmanifest.converting.pack import pack_checkpoint

    require(source, config)
    with ProgressLine() as progress:
        pack_checkpoint(
            source,
            config,
            out,
            components=placed(component),
            shard_size=size_in_bytes(shard_size),
            dtype=dtype.value if dtype else None,
            force=force,
            progress=progress,
        )
    say(f"wrote {out}", f"check it: qmanifest validate {out} --base {source}")
