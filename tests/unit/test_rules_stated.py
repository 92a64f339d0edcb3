"""QM508 and QM408 beside their cases: witnesses, odd documents, several shards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from qmanifest.check import check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

BNB = {
    "quantization_config": {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
    }
}


def bnb(folder: Path, state: str, *, weights: int = 2048, block: int = 64) -> Path:
    table = f"""
    m.weight            U8   {-(-weights // 2)}x1
    m.weight.absmax     F32  {-(-weights // block)}
    m.weight.quant_map  F32  16
    m.weight.quant_state.bitsandbytes__nf4  U8  {len(state)}  =text:{state}
    """
    return write_checkpoint(folder, table, BNB, config_name="config.json")


def state(shape: object, blocksize: int = 64, **more: object) -> str:
    said = {"quant_type": "nf4", "blocksize": blocksize, "shape": shape, **more}
    return json.dumps(said, separators=(",", ":"))


def said_of(folder: Path, base: Path | None = None) -> list[str]:
    return found_by("QM508", folder, base)


def found_by(code: str, folder: Path, base: Path | None = None) -> list[str]:
    opened = open_checkpoint(folder, base=base)
    return [each.message for each in check(opened, deep=True, select=[code]).findings]


def test_a_document_that_is_right(tmp_path: Path) -> None:
    assert said_of(bnb(tmp_path, state([32, 64]))) == []
    odd = bnb(tmp_path / "odd", state([31, 63]), weights=1953)
    assert said_of(odd) == []


def test_one_block_may_be_of_any_size(tmp_path: Path) -> None:
    small = bnb(tmp_path, state([8, 8], 4096), weights=64, block=4096)
    assert said_of(small) == []


@pytest.mark.parametrize(
    "shape", [[32, 65], [2048.0], "2048", None, [0, 2048], [-32, -64], [True, 2048]]
)
def test_shapes_of_other_weights(tmp_path: Path, shape: object) -> None:
    (found,) = said_of(bnb(tmp_path, state(shape)))
    assert "says shape" in found
    assert "of 2,048 weights" in found


@pytest.mark.parametrize("text", ["nonsense", "[1]", "[[[["])
def test_no_document(tmp_path: Path, text: str) -> None:
    (found,) = said_of(bnb(tmp_path, text))
    assert "no JSON object" in found


def test_the_original_has_another_shape(tmp_path: Path) -> None:
    base = write_checkpoint(tmp_path / "base", "m.weight  F16  64x32")
    (found,) = said_of(bnb(tmp_path / "q", state([32, 64])), base)
    assert "[32, 64]" in found


def torchao(folder: Path, metadata: dict[str, str], file: str, table: str) -> None:
    config = {"_type": "Int8WeightOnlyConfig", "_data": {}}
    block = {"quant_method": "torchao", "quant_type": {"default": config}}
    write_checkpoint(
        folder,
        table,
        {"quantization_config": block},
        config_name="config.json",
        file=file,
        metadata=metadata,
    )


def test_one_shard_may_describe_what_another_lists(tmp_path: Path) -> None:
    own = json.dumps({"_type": "Int8Tensor", "_tensor_data_names": ["qdata", "scale"]})
    names = {"tensor_names": '["m.weight"]'}
    first, second = "m._weight_qdata  I8  32x64", "m._weight_scale  F32  32x1"
    torchao(tmp_path, names, "model-00001-of-00002.safetensors", first)
    described = {**names, "m.weight": own}
    torchao(tmp_path, described, "model-00002-of-00002.safetensors", second)
    assert found_by("QM408", tmp_path) == []


def test_dense_tensors_may_be_described_alone(tmp_path: Path) -> None:
    metadata = {"tensor_names": '["n.weight"]', "n.weight": '{"_type": "Tensor"}'}
    table = "n.weight  F32  8\nm._weight_qdata  I8  32x64\nm._weight_scale  F32  32x1"
    torchao(tmp_path, metadata, "model.safetensors", table)
    (found,) = found_by("QM408", tmp_path)
    assert "does not describe 1 weight" in found
