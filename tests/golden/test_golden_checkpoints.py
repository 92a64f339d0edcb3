"""Golden files as whole checkpoints: opened, proven, and rebuilt as their owners do.

Of bitsandbytes, torchao, HQQ and quanto; the tensors keep their owners' names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from support.golden import assert_same, golden, metadata

from qmanifest import CheckpointWeights, open_checkpoint
from qmanifest.backends.reference import dequantize
from qmanifest.check import check
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.testing import write_raw

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Whole:
    """One file, and the checkpoint that it is made into."""

    file: str
    config: dict[str, Any]
    expected: str = "dequant"
    config_name: str = "config.json"
    own_names: bool = True
    """Whether its keys are names of a model already."""
    more: dict[str, Stored] = field(default_factory=dict)


def block(method: str, **keys: object) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": method, **keys}}


def torchao(file: str, kind: str, **data: object) -> Whole:
    config = {"_type": kind, "_version": 2, "_data": data}
    return Whole(f"torchao_{file}", block("torchao", quant_type={"default": config}))


def hqq(bits: int, axis: int) -> Whole:
    params = {"nbits": bits, "group_size": 64, "axis": axis}
    config = block("hqq", quant_config={"weight_quant_params": params})
    shape = Stored("I64", np.array([48, 128], "<i8"))
    file = f"hqq_b{bits}_axis{axis}"
    return Whole(file, config, "dequant_f32", own_names=False, more={"0.shape": shape})


def quanto(kind: str) -> Whole:
    config = {"0": {"weights": kind, "activations": "none"}}
    bias = {"0.bias": Stored("F32", np.zeros(48, "<f4"))}
    name = "quanto_qmap.json"
    return Whole(f"quanto_{kind}", config, config_name=name, more=bias)


def bnb4(table: str, double: str, dtype: str) -> Whole:
    config = block(
        "bitsandbytes",
        load_in_4bit=True,
        bnb_4bit_quant_type=table,
        bnb_4bit_use_double_quant=bool(double),
    )
    return Whole(f"bnb_{table}{double}_{dtype}", config, own_names=False)


PER_GROUP: Final = {"_type": "PerGroup", "_data": {"group_size": 32}}
INT4: Final = {"_type": "torch.dtype", "_data": "int4"}
WHOLES: Final = (
    *(
        bnb4(table, double, dtype)
        for table in ("nf4", "fp4")
        for double in ("", "_double")
        for dtype in ("float32", "bfloat16")
    ),
    Whole("bnb_int8", block("bitsandbytes", load_in_8bit=True), own_names=False),
    torchao("int8wo", "Int8WeightOnlyConfig"),
    torchao("int8wo_v1", "Int8WeightOnlyConfig"),
    torchao("int8dyn", "Int8DynamicActivationInt8WeightConfig"),
    torchao("intx4", "IntxWeightOnlyConfig", weight_dtype=INT4, granularity=PER_GROUP),
    torchao("fp8wo", "Float8WeightOnlyConfig"),
    torchao("NVFP4WeightOnlyConfig", "NVFP4WeightOnlyConfig"),
    torchao("MXDynamicActivationMXWeightConfig", "MXDynamicActivationMXWeightConfig"),
    *(hqq(bits, axis) for bits in (8, 4, 3, 2, 1) for axis in (0, 1)),
    *(quanto(kind) for kind in ("qint2", "qint4", "qint8", "qfloat8_e4m3fn")),
)


def written(whole: Whole, folder: Path) -> Stored:
    """Write the checkpoint; give the weight that the owner makes of it."""
    vectors = dict(golden(whole.file))
    expected = vectors.pop(whole.expected)
    prefix = "" if whole.own_names else "0."
    tensors = {f"{prefix}{key}": each for key, each in vectors.items()} | whole.more
    tensors = {n: t for n, t in tensors.items() if "dequant" not in n}
    said = {key: text for key, text in metadata(whole.file).items() if key != "map"}
    write_raw(
        folder / "model.safetensors",
        {n: (t.dtype, t.array.shape, t.array.tobytes()) for n, t in tensors.items()},
        metadata={"format": "pt", **said},
    )
    (folder / whole.config_name).write_text(json.dumps(whole.config))
    return expected


@pytest.mark.parametrize("whole", WHOLES, ids=lambda whole: whole.file)
def test_checkpoint_is_clean_and_rebuilt_as_its_owner_does(
    whole: Whole, tmp_path: Path
) -> None:
    expected = written(whole, tmp_path)
    opened = open_checkpoint(tmp_path)
    report = check(opened, deep=True)
    assert [each.message for each in report.findings if each.severity != "note"] == []
    source = CheckpointWeights(opened)
    assert source.names() == ("0.weight",)
    scheme, shape = source.weight("0.weight")
    assert shape == expected.array.shape
    made = dequantize(scheme, source.stored("0.weight"), shape)
    assert_same(from_float32(made, expected.dtype), expected)
