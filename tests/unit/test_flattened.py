"""Shapes of flattened weights: written beside, known from elsewhere, or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from qmanifest import CheckpointWeights, open_checkpoint
from qmanifest.backends.reference import dequantize
from qmanifest.errors import BackendError
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

QUANTO = {"m.down_proj": {"weights": "qint4", "activations": "none"}}
BLOCKS = """
m.down_proj.weight._data._data  U8   {rows}x64
m.down_proj.weight._scale       F16  {blocks}x1
m.down_proj.weight._shift       F16  {blocks}x1
"""


def shape_of(folder: Path) -> Any:  # noqa: ANN401 - a shape
    source = CheckpointWeights(open_checkpoint(folder))
    (name,) = source.names()
    scheme, shape = source.weight(name)
    assert dequantize(scheme, source.stored(name), shape).shape == shape
    return shape


def quanto(folder: Path, more: str = "", *, blocks: int = 32) -> Path:
    table = BLOCKS.format(rows=-(-blocks // 2), blocks=blocks) + more
    return write_checkpoint(folder, table, QUANTO, config_name="quanto_qmap.json")


@pytest.mark.parametrize("blocks", [32, 31])
def test_a_bias_tells_the_outputs(tmp_path: Path, blocks: int) -> None:
    bias = f"m.down_proj.bias  F16  {blocks}"
    assert shape_of(quanto(tmp_path, bias, blocks=blocks)) == (blocks, 64)


def test_nothing_tells_it(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="was promised"):
        shape_of(quanto(tmp_path))
    with pytest.raises(BackendError, match="was promised"):
        shape_of(quanto(tmp_path, "m.down_proj.bias  F16  33"))


def hqq(folder: Path, shape: str) -> Path:
    params = {"nbits": 3, "group_size": 64, "axis": 1}
    config = {"quant_method": "hqq", "quant_config": {"weight_quant_params": params}}
    table = f"""
    m.W_q    I32  4x64  =0x12345678
    m.scale  F16  32x1
    m.zero   F16  32x1
    m.shape  {shape}
    """
    return write_checkpoint(
        folder, table, {"quantization_config": config}, config_name="config.json"
    )


@pytest.mark.parametrize("sides", [(32, 64), (16, 128), (64, 32)])
def test_hqq_writes_it(tmp_path: Path, sides: tuple[int, int]) -> None:
    assert shape_of(hqq(tmp_path, "I64  2  ={},{}".format(*sides))) == sides


@pytest.mark.parametrize(
    "shape",
    ["I64  2  =0,64", "I64  2  =-32,64", "I64  2  =32,65", "I64  9  =2", "I32  2  =32"],
)
def test_hqq_writes_what_cannot_be(tmp_path: Path, shape: str) -> None:
    with pytest.raises(BackendError, match="was promised"):
        shape_of(hqq(tmp_path, shape))


def bnb(folder: Path, state: str, weights: int = 2048) -> Path:
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    table = f"""
    m.weight            U8   {-(-weights // 2)}x1
    m.weight.absmax     F32  {-(-weights // 64)}
    m.weight.quant_map  F32  16
    m.weight.quant_state.bitsandbytes__nf4  U8  {len(state)}  =text:{state}
    """
    return write_checkpoint(
        folder, table, {"quantization_config": config}, config_name="config.json"
    )


@pytest.mark.parametrize(("sides", "weights"), [([32, 64], 2048), ([31, 63], 1953)])
def test_bitsandbytes_writes_it(tmp_path: Path, sides: list[int], weights: int) -> None:
    state = json.dumps({"shape": sides}, separators=(",", ":"))
    source = CheckpointWeights(open_checkpoint(bnb(tmp_path, state, weights)))
    assert source.weight("m.weight")[1] == tuple(sides)


@pytest.mark.parametrize(
    "state", ['{"shape":[32,65]}', '{"shape":"32"}', '{"shape":[true,2048]}', "{}"]
)
def test_bitsandbytes_writes_what_cannot_be(tmp_path: Path, state: str) -> None:
    source = CheckpointWeights(open_checkpoint(bnb(tmp_path, state)))
    with pytest.raises(BackendError, match="was promised"):
        source.weight("m.weight")


def test_bitsandbytes_writes_no_document(tmp_path: Path) -> None:
    source = CheckpointWeights(open_checkpoint(bnb(tmp_path, "nonsense")))
    with pytest.raises(BackendError, match="no JSON"):
        source.weight("m.weight")
