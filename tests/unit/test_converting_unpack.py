"""`unpack_checkpoint`: weights rebuilt, all else as it was, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from support.models import (
    CONFIG,
    MODEL,
    Config,
    floats,
    listing,
    load,
    normal,
    same,
    save,
    stored,
    write_json,
)

from qmanifest import (
    CheckpointWeights,
    open_checkpoint,
    pack_checkpoint,
    unpack_checkpoint,
)
from qmanifest.backends.reference import dequantize
from qmanifest.errors import WriteError
from qmanifest.packings.arrays import from_float32
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

BITS: Final = (2, 3, 4, 5, 6, 8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save(tmp_path / "source", {n: stored(v, "BF16") for n, v in MODEL.items()})


@pytest.fixture
def packed(source: Path, tmp_path: Path) -> Path:
    out = tmp_path / "packed"
    pack_checkpoint(source, write_json(tmp_path / "c.json", CONFIG), out)
    return out


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("bits", BITS)
def test_mlx_rebuilds_the_same_weights(
    tmp_path: Path, bits: int, group: int, dtype: str
) -> None:
    mx = pytest.importorskip("mlx.core")
    source = save(tmp_path / "in", {"a.weight": stored(normal(4, 256), dtype)})
    config: Config = {"bits": bits, "group_size": group, "kept_16bit": []}
    config["tensors"] = {"a.weight": {}}
    pack_checkpoint(source, write_json(tmp_path / "c.json", config), tmp_path / "p")
    unpack_checkpoint(tmp_path / "p", tmp_path / "d")
    parts = mx.load(str(tmp_path / "p" / "model.safetensors"))
    expected = mx.dequantize(
        *(parts[f"a.{each}"] for each in ("weight", "scales", "biases")),
        group_size=group,
        bits=bits,
    )
    found = mx.load(str(tmp_path / "d" / "model.safetensors"))
    assert list(found) == ["a.weight"]
    assert found["a.weight"].dtype == expected.dtype
    assert mx.array_equal(found["a.weight"], expected)


def test_what_was_not_quantized_stays_as_it_was(packed: Path, tmp_path: Path) -> None:
    unpack_checkpoint(packed, tmp_path / "dense")
    before, after = load(packed), load(tmp_path / "dense")
    assert after.keys() == MODEL.keys()
    assert {name: tensor.shape for name, tensor in after.items()} == {
        name: values.shape for name, values in MODEL.items()
    }
    for name in ("head.weight", "norm.weight"):
        assert same(before[name], after[name])
    assert {tensor.dtype for tensor in after.values()} == {"BF16"}
    assert listing(tmp_path / "dense") == ["model.safetensors"]


def test_rebuilt_weights_are_near_the_original(packed: Path, tmp_path: Path) -> None:
    unpack_checkpoint(packed, tmp_path / "dense", dtype="float32")
    found = load(tmp_path / "dense")
    for name, bits, group in (("a", 4, 64), ("b", 8, 32), ("experts", 3, 128)):
        original = floats(stored(MODEL[f"{name}.weight"], "BF16"))
        groups = original.reshape(-1, group)
        step = (groups.max(axis=-1) - groups.min(axis=-1)) / (2**bits - 1)
        error = np.abs(floats(found[f"{name}.weight"]) - original).reshape(-1, group)
        assert (error.max(axis=-1) < step + np.abs(groups).max(axis=-1) / 64).all()


@pytest.mark.parametrize("bits", BITS)
def test_packing_again_moves_no_weight_by_more_than_a_step(
    tmp_path: Path, bits: int
) -> None:
    source = save(tmp_path / "in", {"a.weight": stored(normal(8, 128), "F16")})
    config = write_json(
        tmp_path / "c.json",
        {"bits": bits, "group_size": 64, "kept_16bit": [], "tensors": {"a.weight": {}}},
    )
    pack_checkpoint(source, config, tmp_path / "p1")
    unpack_checkpoint(tmp_path / "p1", tmp_path / "d1")
    pack_checkpoint(tmp_path / "d1", config, tmp_path / "p2")
    unpack_checkpoint(tmp_path / "p2", tmp_path / "d2")
    scales = floats(load(tmp_path / "p1")["a.scales"])
    one, two = (floats(load(tmp_path / d)["a.weight"]) for d in ("d1", "d2"))
    moved = np.abs(one - two).reshape(8, 2, 64).max(axis=-1)
    assert (moved <= np.abs(scales) * 1.01).all()


@pytest.mark.parametrize(("dtype", "code"), [("float16", "F16"), ("bfloat16", "BF16")])
def test_all_floats_in_a_dtype(
    packed: Path, tmp_path: Path, dtype: str, code: str
) -> None:
    unpack_checkpoint(packed, tmp_path / "wide", dtype="float32")
    unpack_checkpoint(packed, tmp_path / "dense", dtype=dtype)
    wide, dense = load(tmp_path / "wide"), load(tmp_path / "dense")
    assert {tensor.dtype for tensor in wide.values()} == {"F32"}
    for name, tensor in dense.items():
        assert same(tensor, from_float32(floats(wide[name]), code))


TABLE: Final = """\
a.weight        affine 4/64      4x128  F16 u8-nibbles
b.weight        zero-point 4/64  4x128  F16 U8 u8-nibbles
c.weight        zero-point 4/64  4x128  F16 F16 u8-nibbles
norm.weight     F16              128
ids             I64              3
"""


def test_nibbles_and_zero_points(tmp_path: Path) -> None:
    config = {
        "quant": "q4",
        "group": 64,
        "scheme": "",
        "protected_fp16": ["norm"],
        "emb_q4": ["{a,b,c}.weight"],
    }
    folder = write_checkpoint(tmp_path / "p", TABLE, config, file="emb.safetensors")
    unpack_checkpoint(folder, tmp_path / "d")
    assert listing(tmp_path / "d") == ["emb.safetensors"]
    found, source = load(tmp_path / "d"), CheckpointWeights(open_checkpoint(folder))
    for name in ("a.weight", "b.weight", "c.weight"):
        scheme, shape = source.weight(name)
        expected = dequantize(scheme, source.stored(name), shape)
        assert same(found[name], from_float32(expected, "F16"))
    assert same(found["ids"], load(folder)["ids"])


@pytest.mark.parametrize(
    ("mode", "bits", "group"), [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
)
def test_small_floats_come_in_bf16(
    tmp_path: Path, mode: str, bits: int, group: int
) -> None:
    mx = pytest.importorskip("mlx.core")
    block = {"bits": bits, "group_size": group, "mode": mode}
    config = {"hidden_size": 64, "quantization": block, "quantization_config": block}
    folder = write_checkpoint(
        tmp_path / "p", f"a.weight {mode} 4x64", config, config_name="config.json"
    )
    unpack_checkpoint(folder, tmp_path / "d")
    own = json.loads((tmp_path / "d" / "config.json").read_text())
    assert own == {"hidden_size": 64}
    parts = mx.load(str(folder / "model.safetensors"))
    found = mx.load(str(tmp_path / "d" / "model.safetensors"))["a.weight"]
    expected = mx.dequantize(
        parts["a.weight"], parts["a.scales"], group_size=group, bits=bits, mode=mode
    )
    assert found.dtype == mx.bfloat16
    assert mx.array_equal(found, expected.astype(mx.bfloat16))


def test_shards_of_several_components(tmp_path: Path) -> None:
    config = {
        "quant": "q8",
        "group": 32,
        "scheme": "",
        "protected_fp16": [],
        "emb_q8": ["*.weight"],
        "rr_q8": ["*.weight"],
    }
    table = "\n".join(f"{name}.weight affine 8/32 4x32" for name in "abcd")
    folder = write_checkpoint(tmp_path / "p", table, config, file="emb.safetensors")
    far = write_checkpoint(tmp_path / "far", table)
    unpack_checkpoint(folder, tmp_path / "d", components={"rr": far}, shard_size=600)
    names = [n for n in listing(tmp_path / "d") if not n.endswith("index.json")]
    assert names == [
        f"{c}-0000{n}-of-00002.safetensors" for c in ("emb", "rr") for n in (1, 2)
    ]
    index = json.loads((tmp_path / "d" / "rr.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 4 * 256, "total_parameters": 4 * 128}


def test_progress_counts_every_byte(packed: Path, tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    unpack_checkpoint(
        packed,
        tmp_path / "d",
        progress=lambda done, total, name: calls.append((done, total, name)),
    )
    size = sum(tensor.nbytes for tensor in load(tmp_path / "d").values())
    assert calls[-1][:2] == (size, size)


def refusal(source: Path, out: Path, dtype: str | None = None) -> str:
    """Give the reasons; nothing may have been written."""
    with pytest.raises(WriteError) as caught:
        unpack_checkpoint(source, out, dtype=dtype)
    assert not out.exists()
    return str(caught.value)


def test_all_that_does_not_fit_is_said_at_once(packed: Path, tmp_path: Path) -> None:
    tensors = load(packed)
    del tensors["a.biases"]
    tensors["b.scales"] = stored(normal(8, 3), "BF16")
    tensors["experts.weight"] = stored(MODEL["experts.weight"], "BF16")
    save(packed, tensors)
    said = refusal(packed, tmp_path / "d").splitlines()
    assert said[0] == "the checkpoint cannot be unpacked:"
    assert said[1] == "  'a.weight': biases 'a.biases' are in no file"
    assert said[2].startswith("  'b.weight': scales are BF16 [8, 3]; affine(bits=8")
    assert said[3].startswith("  'experts.weight': 'experts.weight' is stored BF16")


def test_faulty_checkpoints_are_refused(packed: Path, tmp_path: Path) -> None:
    config = packed / "quant_config.json"
    config.unlink()
    assert "there is no quantization config" in refusal(packed, tmp_path / "d")
    write_json(config, {"bits": 4})
    assert "no dialect recognises" in refusal(packed, tmp_path / "d")
    write_json(config, CONFIG | {"kept_16bit": ["a.weight"]})
    assert "'a.weight' is kept by" in refusal(packed, tmp_path / "d")
    write_json(config, CONFIG)
    file = packed / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    assert "faulty" in refusal(packed, tmp_path / "d")


@pytest.mark.parametrize("name", ["a.scales", "head.weight"])
def test_values_that_do_not_fit_the_dtype_are_refused(
    packed: Path, tmp_path: Path, name: str
) -> None:
    tensors = load(packed)
    values = floats(tensors[name]).copy()
    values.flat[0] = 3e38 if name == "head.weight" else 1e6
    save(packed, tensors | {name: stored(values, "BF16")})
    weight = name.replace("scales", "weight")
    with pytest.raises(WriteError, match=f"of '{weight}' are too large for F16"):
        unpack_checkpoint(packed, tmp_path / "d", dtype="float16")
    assert listing(tmp_path / "d") == []
    unpack_checkpoint(packed, tmp_path / "d")


def test_folders_that_are_taken(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="is the source itself"):
        unpack_checkpoint(packed, packed, force=True)
    out = save(tmp_path / "d", {"x": stored(normal(2, 2))})
    with pytest.raises(WriteError, match="has a checkpoint already"):
        unpack_checkpoint(packed, out)
    unpack_checkpoint(packed, out, force=True)
    assert "x" not in load(out)
    assert "is not one of" in refusal(packed, tmp_path / "e", dtype="int4")
    with pytest.raises(FileNotFoundError):
        unpack_checkpoint(tmp_path / "nothing", tmp_path / "e")


def test_a_config_elsewhere(packed: Path, tmp_path: Path) -> None:
    config = packed / "quant_config.json"
    moved = config.rename(tmp_path / "moved.json")
    unpack_checkpoint(packed, tmp_path / "d", config=moved)
    assert load(tmp_path / "d").keys() == MODEL.keys()
