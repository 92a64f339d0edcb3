"""Checkpoints that are in memory alone: headers without files, for rules on shapes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmanifest.checkpoint import Checkpoint
from qmanifest.dtypes import nbytes
from qmanifest.manifest import Component, Manifest
from qmanifest.reading.config_file import ConfigFile
from qmanifest.reading.safetensors_header import Header
from qmanifest.reading.shards import ShardSet
from qmanifest.reading.stores import Store
from qmanifest.tensors import TensorIndex, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from qmanifest.manifest import Kept, Weight
    from qmanifest.tensors import Shape

ROOT = Path("memory")
CONFIG = "quant_config.json"
FILE = "model.safetensors"


def infos(tensors: Mapping[str, tuple[str, Shape]]) -> tuple[TensorInfo, ...]:
    """Place tensors of a dtype and a shape one behind another."""
    found, begin = [], 0
    for name, (dtype, shape) in tensors.items():
        end = begin + nbytes(dtype, shape)
        found.append(TensorInfo(name, dtype, shape, begin, end, FILE))
        begin = end
    return tuple(found)


def index(tensors: Mapping[str, tuple[str, Shape]]) -> TensorIndex:
    """Index tensors by name."""
    return TensorIndex(infos(tensors))


def store(tensors: Mapping[str, tuple[str, Shape]]) -> Store:
    """Put tensors into one shard."""
    found = infos(tensors)
    size = found[-1].end if found else 0
    header = Header(FILE, size, tensors=found, readable=True)
    return Store("", ROOT, (ShardSet("model", ROOT, "", (header,)),))


def checkpoint(
    tensors: Mapping[str, tuple[str, Shape]],
    weights: Iterable[Weight] = (),
    kept: Iterable[Kept] = (),
    *,
    model_config: Mapping[str, Any] | None = None,
    original: Mapping[str, tuple[str, Shape]] | None = None,
) -> Checkpoint:
    """Promise weights of tensors, with what witnesses there are."""
    base = None if original is None else {"": store(original)}
    return Checkpoint(
        ROOT,
        config=ConfigFile(CONFIG, {}, "{}", ()),
        model_config=model_config or {},
        manifest=Manifest(
            "made", CONFIG, (Component("", tuple(weights), tuple(kept)),)
        ),
        stores={"": store(tensors)},
        base=base,
    )
