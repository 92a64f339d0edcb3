"""`pack_checkpoint`: what is written, from what, and in which order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from support.models import (
    CONFIG,
    MODEL,
    floats,
    listing,
    load,
    normal,
    same,
    save,
    stored,
    write_json,
)

from qmanifest import pack_checkpoint, validate
from qmanifest.converting import output
from qmanifest.errors import WriteError
from qmanifest.packings import u32_lsb
from qmanifest.packings.arrays import Stored
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from pathlib import Path

BITS: Final = (2, 3, 4, 5, 6, 8)
GROUPS: Final = (32, 64, 128)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save(tmp_path / "source", {n: stored(v, "BF16") for n, v in MODEL.items()})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_json(tmp_path / "any_name.json", CONFIG)


def assert_proven(out: Path, source: Path, **arguments: Any) -> None:  # noqa: ANN401 - any argument of `validate`
    """Check bytes and original: nothing but notes may be found."""
    report = validate(out, deep=True, base=source, **arguments)
    assert [f.message for f in report.findings if f.severity != "note"] == []


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("bits", BITS)
def test_every_width_and_group(
    tmp_path: Path, bits: int, group: int, dtype: str
) -> None:
    weight = stored(normal(4, 256, seed=bits), dtype)
    norm = stored(normal(32), dtype)
    source = save(tmp_path / "in", {"a.weight": weight, "norm.weight": norm})
    config = write_json(
        tmp_path / "c.json",
        {
            "bits": bits,
            "group_size": group,
            "kept_16bit": ["norm.weight"],
            "tensors": {"a.weight": {"shape": [4, 256]}},
        },
    )
    pack_checkpoint(source, config, tmp_path / "out")
    scale = "F16" if dtype == "F32" else dtype
    expected = quantize_affine(weight, bits, group, scale)
    found = load(tmp_path / "out")
    assert list(found) == ["a.weight", "a.scales", "a.biases", "norm.weight"]
    assert same(found["a.weight"], Stored("U32", u32_lsb.pack(expected.codes, bits)))
    assert same(found["a.scales"], expected.scales)
    assert same(found["a.biases"], expected.biases)
    assert same(found["norm.weight"], stored(floats(norm), scale))
    assert_proven(tmp_path / "out", source)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
@pytest.mark.parametrize("bits", BITS)
def test_mlx_makes_the_same_tensors(tmp_path: Path, bits: int, dtype: str) -> None:
    mx = pytest.importorskip("mlx.core")
    weight = stored(normal(4, 256, seed=bits), dtype)
    source = save(tmp_path / "in", {"a.weight": weight})
    config = {"bits": bits, "group_size": 64, "kept_16bit": [], "tensors": {"*": {}}}
    pack_checkpoint(source, write_json(tmp_path / "c.json", config), tmp_path / "out")
    peer = mx.load(str(tmp_path / "out" / "model.safetensors"))
    array = mx.array(weight.array)
    array = array.view(mx.bfloat16) if dtype == "BF16" else array
    theirs = mx.quantize(array, group_size=64, bits=bits)
    for name, expected in zip(("weight", "scales", "biases"), theirs, strict=True):
        assert mx.array_equal(peer[f"a.{name}"], expected), name


def test_patterns_experts_and_overrides(
    source: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pack_checkpoint(source, config, out)
    found = load(out)
    assert {name: (t.dtype, t.shape) for name, t in found.items()} == {
        "a.weight": ("U32", (8, 16)),
        "a.scales": ("BF16", (8, 2)),
        "a.biases": ("BF16", (8, 2)),
        "b.weight": ("U32", (8, 32)),
        "b.scales": ("BF16", (8, 4)),
        "b.biases": ("BF16", (8, 4)),
        "experts.weight": ("U32", (3, 4, 12)),
        "experts.scales": ("BF16", (3, 4, 1)),
        "experts.biases": ("BF16", (3, 4, 1)),
        "head.weight": ("BF16", (4, 128)),
        "norm.weight": ("BF16", (128,)),
    }
    assert listing(out) == ["model.safetensors", "quant_config.json"]
    assert (out / "quant_config.json").read_bytes() == config.read_bytes()
    assert_proven(out, source)


def test_q4_lists_write_a_file_for_each_component(tmp_path: Path) -> None:
    tensors = {n: stored(v) for n, v in MODEL.items() if n != "experts.weight"}
    source = save(tmp_path / "in", tensors, "emb.safetensors")
    ranker = save(tmp_path / "far", {"a.weight": tensors["a.weight"]})
    config = write_json(
        tmp_path / "c.json",
        {
            "quant": "q4",
            "group": 64,
            "scheme": "4-bit",
            "protected_fp16": ["norm", "head"],
            "emb_q4": ["{a,b}.weight"],
            "rr_q4": ["a.weight"],
        },
    )
    out = tmp_path / "out"
    pack_checkpoint(source, config, out, components={"rr": ranker})
    assert listing(out) == ["emb.safetensors", "quant_config.json", "rr.safetensors"]
    emb, rr = load(out, "emb.safetensors"), load(out, "rr.safetensors")
    assert {t.dtype for t in emb.values()} == {"U32", "F16"}
    assert list(rr) == ["a.weight", "a.scales", "a.biases"]
    assert same(emb["a.weight"], rr["a.weight"])
    assert_proven(out, source)


def test_mlx_blocks_are_packed_by_their_overrides(source: Path, tmp_path: Path) -> None:
    model = {
        "hidden_size": 128,
        "quantization": {"bits": 4, "group_size": 64, "a": {"bits": 8}, "b": True},
    }
    write_json(source / "config.json", {"hidden_size": 128})
    out = tmp_path / "out"
    pack_checkpoint(source, write_json(tmp_path / "q.json", model), out)
    assert listing(out) == ["config.json", "model.safetensors"]
    assert json.loads((out / "config.json").read_text()) == model
    found = load(out)
    assert found["a.weight"].shape == (8, 32)
    assert found["b.weight"].shape == (8, 16)
    assert found["head.weight"].dtype == "BF16"
    assert_proven(out, source)


def test_shards_and_their_index(source: Path, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pack_checkpoint(source, config, out, shard_size=900)
    shards = [name for name in listing(out) if name.endswith(".safetensors")]
    assert len(shards) > 2
    assert shards[0] == f"model-00001-of-{len(shards):05d}.safetensors"
    index = json.loads((out / "model.safetensors.index.json").read_text())
    found = load(out)
    assert index["metadata"] == {
        "total_size": sum(tensor.nbytes for tensor in found.values()),
        "total_parameters": sum(value.size for value in MODEL.values()),
    }
    assert index["weight_map"].keys() == found.keys()
    assert set(index["weight_map"].values()) == set(shards)
    assert_proven(out, source)


def test_stale_files_go_and_others_stay(
    source: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pack_checkpoint(source, config, out, shard_size=900)
    (out / ".model.safetensors.0123abcd.tmp").write_text("left by a killed run")
    (out / "quantization.json").write_text("{}")
    (out / "config.json").write_text("{}")
    (out / "README.md").write_text("mine")
    pack_checkpoint(source, config, out, force=True)
    assert listing(out) == ["README.md", "model.safetensors", "quant_config.json"]
    assert_proven(out, source)


def test_config_is_written_last(
    source: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "out", []
    write_json(source / "config.json", {"hidden_size": 128})

    def spy(path: Path, text: str) -> None:
        seen.append((path.name, listing(out)))
        path.write_text(text)

    monkeypatch.setattr(output, "write_text", spy)
    pack_checkpoint(source, config, out)
    assert seen == [
        ("config.json", ["model.safetensors"]),
        ("quant_config.json", ["config.json", "model.safetensors"]),
    ]


def test_model_config_is_copied_as_it_is(
    source: Path, config: Path, tmp_path: Path
) -> None:
    text = '{ "hidden_size":128,\n\t"é": 1e0 }'
    (source / "config.json").write_text(text)
    pack_checkpoint(source, config, tmp_path / "out")
    assert (tmp_path / "out" / "config.json").read_text() == text


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_broken_model_config_is_refused(
    source: Path, config: Path, tmp_path: Path, text: str
) -> None:
    (source / "config.json").write_text(text)
    with pytest.raises(WriteError, match="cannot be copied"):
        pack_checkpoint(source, config, tmp_path / "out")
    assert listing(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("dtype", "asked", "written"),
    [
        ("F32", None, "F16"),
        ("F32", "bfloat16", "BF16"),
        ("BF16", None, "BF16"),
        ("BF16", "float16", "F16"),
        ("F16", "bfloat16", "BF16"),
    ],
)
def test_dtype_of_scales_and_kept_tensors(
    tmp_path: Path, config: Path, dtype: str, asked: str | None, written: str
) -> None:
    tensors = {name: stored(value, dtype) for name, value in MODEL.items()}
    tensors["ids"] = stored(np.arange(4, dtype=np.int64))
    tensors["scalar"] = stored(np.full((), 2.5), dtype)
    tensors["empty"] = stored(np.zeros((0, 64), np.float32), dtype)
    source = save(tmp_path / "in", tensors)
    pack_checkpoint(source, config, tmp_path / "out", dtype=asked)
    found = load(tmp_path / "out")
    floating = {t.dtype for n, t in found.items() if t.dtype not in {"U32", "I64"}}
    assert floating == {written}
    assert same(found["ids"], tensors["ids"])
    assert same(found["scalar"], stored(floats(tensors["scalar"]), written))
    assert found["empty"].shape == (0, 64)
    assert_proven(tmp_path / "out", source)


def test_dtypes_that_the_config_does_not_have(source: Path, tmp_path: Path) -> None:
    config = write_json(
        tmp_path / "c.json",
        {
            "quant": "q4",
            "group": 64,
            "scheme": "",
            "protected_fp16": ["norm"],
            "emb_q4": ["a.weight"],
        },
    )
    with pytest.raises(WriteError, match="has F16 where BF16 is asked for"):
        pack_checkpoint(source, config, tmp_path / "out", dtype="bfloat16")
    with pytest.raises(WriteError, match="dtype 'int8' is not one of float16"):
        pack_checkpoint(source, config, tmp_path / "out", dtype="int8")


def test_a_single_file_as_the_source(
    source: Path, config: Path, tmp_path: Path
) -> None:
    save(source, {"a.weight": stored(MODEL["a.weight"])}, "another.safetensors")
    out = tmp_path / "out"
    pack_checkpoint(source / "model.safetensors", config, out)
    assert_proven(out, source / "model.safetensors")


def test_progress_counts_every_byte(source: Path, config: Path, tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    out = tmp_path / "out"
    pack_checkpoint(
        source,
        config,
        out,
        shard_size=900,
        progress=lambda done, total, name: calls.append((done, total, name)),
    )
    size = sum(tensor.nbytes for tensor in load(out).values())
    assert [total for _, total, _ in calls] == [size] * len(calls)
    done = [count for count, _, _ in calls]
    assert done == sorted(done)
    assert done[-1] == size


def test_packing_twice_writes_the_same_bytes(
    source: Path, config: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        pack_checkpoint(source, config, tmp_path / name)
    for file in listing(tmp_path / "one"):
        assert (tmp_path / "one" / file).read_bytes() == (
            tmp_path / "two" / file
        ).read_bytes()
