"""Checkpoints to measure on: very many tensors, or large ones."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks import ours
from safetensors.numpy import save_file

from qmanifest.reading.limits import MAX_INDEX
from qmanifest.testing.tables import write_raw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from qmanifest.testing.tables import RawTensor

WIDTH: Final = 64
"""Inputs of a small matrix: one group."""
PARTS: Final = 3
"""Tensors of one affine weight: codes, scales, biases."""
SMALL_BYTES: Final = 36
"""Bytes of a small weight's parts together."""


def _small_parts() -> dict[str, npt.NDArray[Any]]:
    """Make the parts of one small weight, one row of 4-bit codes."""
    return {
        "weight": np.arange(32, dtype=np.uint8).view(np.uint32).reshape(1, 8),
        "scales": np.ones((1, 1), np.float16),
        "biases": np.ones((1, 1), np.float16),
    }


def modules(count: int) -> Iterator[str]:
    """Name `count` layers as a mixture of experts does."""
    for number in range(count):
        layer, expert = divmod(number, 512)
        yield f"model.layers.{layer}.mlp.experts.{expert}.down_proj"


def write_many(folder: Path, tensors: int, shards: int) -> list[Path]:
    """Write affine weights of 4 bits, three tensors each, over many shards.

    There is an index file, unless it would be larger than is read.

    Returns:
        The shards.

    """
    folder.mkdir(exist_ok=True)
    names = modules(tensors // PARTS)
    per_shard = -(-(tensors // PARTS) // shards)
    places: dict[str, str] = {}
    files = []
    for number in range(shards):
        content = {
            f"{module}.{part}": array
            for module in islice(names, per_shard)
            for part, array in _small_parts().items()
        }
        file = folder / f"model-{number + 1:05}-of-{shards:05}.safetensors"
        save_file(content, file, {"format": "mlx"})  # headers as they are in the wild
        places |= dict.fromkeys(content, file.name)
        files.append(file)
    total = SMALL_BYTES * (tensors // PARTS)
    index = {"metadata": {"total_size": total}, "weight_map": places}
    text = json.dumps(index)
    if len(text) <= MAX_INDEX:
        path = folder / "model.safetensors.index.json"
        path.write_text(text, encoding="utf-8")
    return files


def write_entries_config(folder: Path, tensors: int) -> Path:
    """Write a `tensor-map` config with an entry for each of `write_many`'s weights."""
    return _write(
        folder / "quant_config.json",
        {
            "bits": 4,
            "group_size": WIDTH,
            "kept_16bit": [],
            "tensors": {
                f"{module}.weight": {"bits": 4, "group_size": WIDTH, "shape": [1, 64]}
                for module in modules(tensors // PARTS)
            },
        },
    )


def write_glob_config(folder: Path, *, keep: bool = False) -> Path:
    """Write a `tensor-map` config with one pattern, for all that is in `folder`.

    Args:
        folder: of the checkpoint.
        keep: whether the pattern keeps tensors, and does not quantize them.

    """
    pattern = "model.layers.*.weight"
    return _write(
        folder / "quant_config.json",
        {
            "bits": 4,
            "group_size": WIDTH,
            "kept_16bit": [pattern] if keep else [],
            "tensors": {} if keep else {pattern: {}},
        },
    )


def write_matrices(
    folder: Path, count: int, shape: tuple[int, int], per_shard: int = 10
) -> int:
    """Write a dense F16 checkpoint, and `quant_config.json` for 4 bits beside it.

    Returns:
        Bytes of all matrices.

    """
    folder.mkdir(exist_ok=True)
    names = [f"model.layers.{number}.mlp.up_proj.weight" for number in range(count)]
    nbytes = 0
    for first in range(0, count, per_shard):
        content: dict[str, RawTensor] = {}
        for number in range(first, min(count, first + per_shard)):
            matrix = ours.random_matrix(shape, "F16", seed=number)
            content[names[number]] = ("F16", shape, matrix.array.tobytes())
            nbytes += matrix.nbytes
        write_raw(folder / f"part-{first // per_shard:03}.safetensors", content)
    entries = {name: {"shape": list(shape)} for name in names}
    config = {"bits": 4, "group_size": 64, "kept_16bit": [], "tensors": entries}
    _write(folder / "quant_config.json", config)
    return nbytes


def _write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
