"""Laws of packing and unpacking whole checkpoints."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import floats, listing, load, same, save, stored, write_json

from qmanifest import pack_checkpoint, unpack_checkpoint, validate

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Stored

NAMES: Final = ("a.weight", "b.0.weight", "b.1.weight", "c.weight")
DTYPES: Final = ("F32", "F16", "BF16")


@st.composite
def models(draw: st.DrawFn) -> tuple[dict[str, Stored], dict[str, Any]]:
    """Draw a model, and a config that packs some of it and keeps some."""
    dtype = draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 2.0 ** draw(st.integers(-8, 4))
    tensors: dict[str, Stored] = {}
    entries: dict[str, dict[str, Any]] = {}
    kept = ["*norm*"]
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        experts = draw(st.lists(st.integers(1, 2), max_size=1))
        shape = (*experts, draw(st.integers(1, 4)), 128 * draw(st.integers(1, 2)))
        tensors[name] = stored(rng.normal(size=shape) * scale, dtype)
        if name != "c.weight":
            entries[name] = {
                "bits": draw(st.sampled_from([2, 3, 4, 5, 6, 8])),
                "group_size": draw(st.sampled_from([32, 64, 128])),
            }
            if draw(st.booleans()):
                entries[name]["shape"] = list(shape)
        else:
            kept.append(name)
    tensors["norm.weight"] = stored(rng.normal(size=7), dtype)
    tensors["steps"] = stored(rng.integers(0, 9, 3))
    tensors["a.weight"] = tensors.get(
        "a.weight", stored(rng.normal(size=(1, 64)), dtype)
    )
    entries.setdefault("a.weight", {"bits": 4, "group_size": 64})
    config = {"bits": 4, "group_size": 64, "kept_16bit": kept, "tensors": entries}
    return tensors, config


@settings(max_examples=25)
@given(model=models(), shard_size=st.sampled_from([300, 2_000, 10**9]))
def test_what_is_packed_is_proven_and_comes_back(
    model: tuple[dict[str, Stored], dict[str, Any]], shard_size: int
) -> None:
    tensors, config = model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = save(folder / "in", tensors)
        path = write_json(folder / "c.json", config)
        pack_checkpoint(source, path, folder / "p", shard_size=shard_size)
        report = validate(folder / "p", deep=True, base=source)
        assert [f.message for f in report.findings if f.severity != "note"] == []
        unpack_checkpoint(folder / "p", folder / "d", shard_size=shard_size)
        packed, found = load(folder / "p"), load(folder / "d")
        assert not [each for each in listing(folder / "p") if each.endswith(".tmp")]
    assert found.keys() == tensors.keys()
    for key, tensor in found.items():
        assert tensor.shape == tensors[key].shape
        if key not in config["tensors"]:
            wide = tensors[key].dtype == "F32"  # the config keeps 16 bits
            expected = stored(floats(tensors[key]), "F16") if wide else tensors[key]
            assert same(tensor, expected)
            continue
        entry = config["tensors"][key]
        group = entry["group_size"]
        scales = floats(packed[key.replace("weight", "scales")]).reshape(-1, 1)
        error = np.abs(floats(tensor) - floats(tensors[key])).reshape(-1, group)
        largest = np.abs(floats(tensors[key])).reshape(-1, group).max(axis=1)
        coarse = 2.0 ** (-7 if tensor.dtype == "BF16" else -10)  # of the stored floats
        assert (error.max(axis=1) <= np.abs(scales[:, 0]) + 4 * coarse * largest).all()
