"""Small checkpoints of arrays, written and read without qmanifest's own writers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from qmanifest.packings.arrays import (
    Stored,
    from_float32,
    to_array,
    to_bytes,
    to_float32,
)
from qmanifest.reading.stores import open_stores
from qmanifest.reading.tensor_bytes import read_tensor
from qmanifest.testing import write_raw

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Config = dict[str, Any]
Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]


def normal(*shape: int, seed: int = 0) -> Float32:
    """Draw a weight as models have them."""
    values = np.random.default_rng(seed).normal(size=shape) / 10
    return values.astype(np.float32)


def stored(values: Array, dtype: str = "F32") -> Stored:
    """Round an array to a dtype; integers stay as they are."""
    if values.dtype.kind == "f":
        return from_float32(values.astype(np.float32), dtype)
    return Stored({"i8": "I64", "u1": "U8"}[values.dtype.str[1:]], values)


def save(
    folder: Path, tensors: Mapping[str, Stored], file: str = "model.safetensors"
) -> Path:
    """Write a file of tensors into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = {n: (t.dtype, t.shape, to_bytes(t)) for n, t in tensors.items()}
    write_raw(folder / file, raw)
    return folder


def load(folder: Path, file: str | None = None) -> dict[str, Stored]:
    """Read every tensor of a folder, or of one file in it."""
    store = open_stores(folder if file is None else folder / file).merged
    if store is None:
        return {}
    assert store.complete
    assert store.index.repeats == ()
    return {
        name: Stored(
            tensor.dtype,
            to_array(tensor.dtype, tensor.shape, read_tensor(store.root, tensor)),
        )
        for name, tensor in store.index.items()
    }


def floats(tensor: Stored) -> Float32:
    """Widen a tensor of floats."""
    return to_float32(tensor)


def same(one: Stored, two: Stored) -> bool:
    """Compare dtype, shape and bytes."""
    return (one.dtype, one.shape, to_bytes(one)) == (
        two.dtype,
        two.shape,
        to_bytes(two),
    )


def write_json(path: Path, value: object) -> Path:
    """Write a config."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
    return path


def listing(folder: Path) -> list[str]:
    """Name everything in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


MODEL: Final = {
    "a.weight": normal(8, 128, seed=1),
    "b.weight": normal(8, 128, seed=2),
    "experts.weight": normal(3, 4, 128, seed=3),
    "head.weight": normal(4, 128, seed=4),
    "norm.weight": normal(128, seed=5),
}
CONFIG: Final[Config] = {
    "bits": 4,
    "group_size": 64,
    "kept_16bit": ["head.weight", "norm.*"],
    "tensors": {
        "a.weight": {"shape": [8, 128]},
        "b.weight": {"bits": 8, "group_size": 32},
        "ex*.weight": {"bits": 3, "group_size": 128},
    },
}
