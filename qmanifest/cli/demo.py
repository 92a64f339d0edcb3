"""`qmanifest demo`: a tiny checkpoint to try the other commands on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from qmanifest.cli.console import say
from qmanifest.cli.options import ForceOption
from qmanifest.cli.values import UsageError

EXAMPLES: Final = """\
  qmanifest demo ./demo
  qmanifest demo ./demo --broken"""

TABLE: Final = """\
embed.weight                   affine 8/32  64x128  F16
layers.0.attention.q_proj      affine 4/64  64x128  F16
layers.0.attention.o_proj      affine 4/64  128x64  F16
layers.0.mlp.up_proj           affine 4/64  256x128 F16
layers.0.mlp.down_proj         affine 4/64  128x256 F16
layers.0.norm.weight           F16          128
lm_head.weight                 F16          64x128
"""
SHAPES: Final = {
    "embed.weight": (64, 128),
    "layers.0.attention.q_proj.weight": (64, 128),
    "layers.0.attention.o_proj.weight": (128, 64),
    "layers.0.mlp.up_proj.weight": (256, 128),
    "layers.0.mlp.down_proj.weight": (128, 256),
}
CONFIG: Final = "quant_config.json"

FolderArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder to write.")
]


def demo(
    folder: FolderArgument,
    broken: Annotated[
        bool, typer.Option("--broken", help="Make three mistakes, to see them found.")
    ] = False,
    force: ForceOption = False,
) -> None:
    """Write a tiny checkpoint, and say what to run next."""
    from qmanifest.testing.tables import tensors_of, write_raw

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is no folder. Name another one.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise UsageError(f"{str(folder)!r} is not empty. Name another one, or --force.")
    config, tensors = _config(), tensors_of(TABLE)
    if broken:
        config["kept_16bit"] = ["lm_haed.weight", "layers.*.norm.weight"]
        config["tensors"]["layers.0.attention.q_proj.weight"]["bits"] = 8
        del tensors["layers.0.mlp.up_proj.biases"]
    folder.mkdir(parents=True, exist_ok=True)
    write_raw(folder / "model.safetensors", tensors, metadata={"format": "mlx"})
    text = json.dumps(config, indent=1) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")
    say(f"wrote {folder}: {len(tensors)} tensors, and their config {CONFIG}")
    say("next:", *(f"  {line}" for line in _next(folder, broken)))


def _config() -> dict[str, Any]:
    """Write the config that the table keeps."""
    entries: dict[str, dict[str, Any]] = {
        name: {"shape": list(shape)} for name, shape in SHAPES.items()
    }
    entries["embed.weight"] |= {"bits": 8, "group_size": 32}
    kept = ["lm_head.weight", "layers.*.norm.weight"]
    return {"bits": 4, "group_size": 64, "kept_16bit": kept, "tensors": entries}


def _next(folder: Path, broken: bool) -> list[str]:
    """List what to try, as commands."""
    tensor = "layers.0.attention.q_proj.weight"
    commands = [f"qmanifest validate {folder}", f"qmanifest explain {folder} {tensor}"]
    if broken:
        return [*commands, "qmanifest explain QM203"]
    return [*commands, f"qmanifest size {folder}"]
