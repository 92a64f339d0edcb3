"""Ten faults for the checkpoints of other libraries, seeded one at a time.

A checkpoint is two shards with an index; the second shard has the encoder. What the
libraries call scales, and how each of them lies in its config, is in a `Format`.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor

MODULE = "encoder.layer.3.intermediate.dense"
NAME = f"{MODULE}.weight"
KEPT = "pooler.dense"
FIRST, SECOND = (f"model-0000{n}-of-00002.safetensors" for n in (1, 2))
INDEX = "model.safetensors.index.json"

Tensors = dict[str, "Tensor"]


@dataclass(frozen=True)
class Format:
    """What the faults need to know of a format."""

    scales: str
    """Name of the layer's scales."""
    codes: str
    """Name of the layer's codes."""
    kept: Callable[[], Tensors]
    """Makes the kept layer's tensors, quantized."""
    spoil: Callable[[Tensor], None]
    """Makes a scale that is no number, in place."""
    wrong_bits: Callable[[dict[str, Any]], object]
    """Makes the config say another width."""
    same_shapes: Callable[[dict[str, Any], Tensors], object]
    """Makes it lie in numbers that leave every name as it is."""
    says: Mapping[str, tuple[str, ...]]
    """What the finding of each fault has to say."""


def write(
    folder: Path,
    tensors: Tensors,
    metadata: Mapping[str, str],
    config: Mapping[str, Any],
) -> Path:
    """Write a checkpoint of two shards with an index."""
    encoder = {
        n: t.contiguous() for n, t in tensors.items() if n.startswith("encoder.")
    }
    others = {n: t.contiguous() for n, t in tensors.items() if n not in encoder}
    for file, own in ((FIRST, others), (SECOND, encoder)):
        save_file(own, folder / file, {"format": "pt", **metadata})
    (folder / "config.json").write_text(json.dumps(config))
    _write_index(
        folder, {**dict.fromkeys(others, FIRST), **dict.fromkeys(encoder, SECOND)}
    )
    return folder


def _write_index(folder: Path, shards: Mapping[str, str]) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": shards}))


def _read_index(folder: Path) -> dict[str, str]:
    shards: dict[str, str] = json.loads((folder / INDEX).read_text())["weight_map"]
    return shards


def _edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def _rewrite(
    folder: Path, file: str, change: Callable[[Tensors], object], *, index: bool = True
) -> None:
    """Change the tensors of a shard, and list them anew."""
    with safe_open(folder / file, "pt") as shard:
        metadata = shard.metadata()
        tensors = {name: shard.get_tensor(name) for name in shard.keys()}  # noqa: SIM118 - not a dict
    change(tensors)
    save_file(tensors, folder / file, metadata)
    if index:
        shards = {n: f for n, f in _read_index(folder).items() if f != file}
        _write_index(folder, {**shards, **dict.fromkeys(tensors, file)})


def seed(key: str, folder: Path, kind: Format) -> None:
    """Seed one fault, `b1` to `b10`, into a checkpoint."""
    if key == "b1":
        _edit(folder, kind.wrong_bits)
    elif key == "b2":
        _rewrite(folder, SECOND, lambda own: own.pop(kind.scales))
    elif key == "b3":
        _rewrite(folder, SECOND, lambda own: _halve(own, kind.scales))
    elif key == "b4":
        _rewrite(folder, FIRST, lambda own: _swap(own, f"{KEPT}.weight", kind.kept()))
    elif key == "b5":
        _rewrite(folder, SECOND, _without_layer, index=False)
    elif key == "b6":
        whole = (folder / SECOND).read_bytes()
        (folder / SECOND).write_bytes(whole[:-1000])
    elif key == "b7":
        (folder / SECOND).unlink()
    elif key == "b8":
        _edit(
            folder,
            lambda config: _rewrite(
                folder, SECOND, lambda own: kind.same_shapes(config, own)
            ),
        )
    elif key == "b9":
        _rewrite(folder, SECOND, lambda own: kind.spoil(own[kind.scales]))
    else:
        _write_index(folder, {**_read_index(folder), kind.codes: FIRST})


def _halve(own: Tensors, name: str) -> None:
    own[name] = own[name][::2].contiguous()


def _swap(own: Tensors, name: str, made: Tensors) -> None:
    del own[name]
    own.update(made)


def _without_layer(own: Tensors) -> None:
    for name in [name for name in own if name.startswith(MODULE)]:
        del own[name]


def copied(clean: Path, scratch: Path) -> Path:
    """Copy a checkpoint, to be damaged."""
    copy = scratch / "copy"
    shutil.copytree(clean, copy)
    return copy


def spoil(scales: Tensor) -> None:
    """Make the eighth scale NaN."""
    scales.view(-1)[7] = torch.nan
