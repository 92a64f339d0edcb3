"""Laws of blocks: however finely tensors are cut, the files are the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.models import floats, listing, load, same, save, stored, write_json

from qmanifest import (
    CheckpointWeights,
    open_checkpoint,
    pack_checkpoint,
    unpack_checkpoint,
)
from qmanifest.backends.reference import dequantize
from qmanifest.converting import ahead
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.schemes import Microscaling
from qmanifest.testing import write_checkpoint
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS: Final = st.sampled_from([8, 64, 1000, 4096])
"""Bytes of a block: an element or four, less than a row, a few rows, nearly all."""
DTYPES: Final = st.sampled_from(["F32", "F16", "BF16"])


def with_blocks(block: int, in_flight: int, run: Callable[[], None]) -> None:
    """Run with blocks of at most `block` bytes and so many bytes in flight."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "BLOCK", block)
        default = ahead.in_order.__defaults__
        patch.setattr(ahead.in_order, "__defaults__", (in_flight,))
        run()
    assert ahead.in_order.__defaults__ == default


@settings(max_examples=25, deadline=None)
@given(
    block=BLOCKS,
    in_flight=st.sampled_from([1, 500, 10**8]),
    dtype=DTYPES,
    shape=st.sampled_from([(1, 32), (3, 32), (2, 3, 96), (7, 64), (5, 256)]),
    bits=st.sampled_from([2, 3, 4, 5, 6, 8]),
    shard_size=st.sampled_from([200, 10**9]),
    seed=st.integers(0, 2**32 - 1),
)
def test_blocks_make_what_the_reference_makes_of_whole_weights(
    *,
    block: int,
    in_flight: int,
    dtype: str,
    shape: tuple[int, ...],
    bits: int,
    shard_size: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    weights = {f"{n}.weight": stored(rng.normal(size=shape), dtype) for n in "ab"}
    norm = stored(rng.normal(size=301), dtype)
    config: dict[str, Any] = {"bits": bits, "group_size": 32, "kept_16bit": ["norm"]}
    config["tensors"] = {name: {} for name in weights}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = save(folder / "in", {**weights, "norm": norm})
        path = write_json(folder / "c.json", config)

        def run() -> None:
            pack_checkpoint(source, path, folder / "p", shard_size=shard_size)
            unpack_checkpoint(folder / "p", folder / "d", shard_size=shard_size)

        with_blocks(block, in_flight, run)
        packed, dense = load(folder / "p"), load(folder / "d")
    scale = "F16" if dtype == "F32" else dtype
    for key, weight in weights.items():
        made = quantize_affine(weight, bits, 32, scale)
        words = Stored("U32", PACKINGS["u32-lsb"].pack(made.codes, bits))
        assert same(packed[key], words)
        assert same(packed[key.replace("weight", "scales")], made.scales)
        assert same(packed[key.replace("weight", "biases")], made.biases)
        assert dense[key].dtype == scale
    assert same(packed["norm"], stored(floats(norm), scale))
    assert same(dense["norm"], packed["norm"])


TABLE: Final = """\
a.weight        affine 4/64      5x128    F16 u8-nibbles
b.weight        zero-point 4/64  5x128    F16 U8 u8-nibbles
c.weight        affine 4/64      3x2x128  BF16
norm.weight     F16              128
ids             I64              3
"""


@settings(max_examples=15, deadline=None)
@given(block=BLOCKS, asked=st.sampled_from([None, "float32", "bfloat16"]))
def test_blocks_rebuild_what_the_reference_rebuilds(
    block: int, asked: str | None
) -> None:
    config = {
        "quant": "q4",
        "group": 64,
        "scheme": "",
        "protected_fp16": ["norm"],
        "emb_q4": ["{a,b,c}.weight"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = write_checkpoint(
            Path(name) / "p", TABLE, config, file="emb.safetensors"
        )
        out = Path(name) / "d"
        with_blocks(block, 1000, lambda: unpack_checkpoint(folder, out, dtype=asked))
        found, source = load(out), CheckpointWeights(open_checkpoint(folder))
        assert listing(out) == ["emb.safetensors"]
        for key in source.names():
            scheme, shape = source.weight(key)
            values = dequantize(scheme, source.stored(key), shape)
            assert same(found[key], from_float32(values, found[key].dtype))


@pytest.mark.parametrize("block", [8, 600, 10**6])
def test_experts_keep_their_own_global_scale(tmp_path: Path, block: int) -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (3, 4, 8), dtype=np.uint32)
    tensors = {
        "a.weight": Stored("U32", words),
        "a.scales": Stored("U8", rng.integers(0, 120, (3, 4, 4), dtype=np.uint8)),
        "a.global_scale": stored(np.array([1.0, 300.0, 7.0])),
    }
    folder = save(tmp_path / "p", tensors)
    quantization = {"bits": 4, "group_size": 16, "mode": "nvfp4"}
    config = {"hidden_size": 64, "quantization": quantization}
    write_json(folder / "config.json", config)
    with_blocks(block, 1000, lambda: unpack_checkpoint(folder, tmp_path / "d"))
    source = CheckpointWeights(open_checkpoint(folder))
    scheme, shape = source.weight("a.weight")
    assert scheme == Microscaling(
        "e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"
    )
    values = dequantize(scheme, source.stored("a.weight"), shape)
    assert same(load(tmp_path / "d")["a.weight"], from_float32(values, "BF16"))
