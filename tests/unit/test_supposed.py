"""Sizes before a conversion: a config, a 16-bit model, and nothing quantized yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.cli import Run
from support.golden_checkpoints import CHECKPOINTS, Checkpoint
from support.models import save, stored, write_json

from qmanifest.checkpoint import open_config
from qmanifest.dtypes import nbytes
from qmanifest.supposed import suppose
from qmanifest.tensors import Shape, TensorIndex, TensorInfo

if TYPE_CHECKING:
    from pathlib import Path

each_family = pytest.mark.parametrize("made", CHECKPOINTS, ids=lambda made: made.file)
OPEN = {"bnb_nf4_bfloat16", "bnb_fp4_double_float32", "hqq_b4_axis1", "hqq_b3_axis0"}
"""Files with parts of no fixed length: `quant_state`, and HQQ's settings."""
WIDE = {"torchao_int8wo", "quanto_qint4"}
"""Files whose scales are F32, where the format allows 16 bits too."""
OTHERS = {"modelopt_nvfp4", "torchao_NVFP4WeightOnlyConfig"}
"""Files that lack an optional scale of activations, or whose scales are swizzled."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys, "size")


def index_of(shapes: dict[str, Shape]) -> TensorIndex:
    """Describe a model in BF16."""
    return TensorIndex(
        TensorInfo(name, "BF16", shape, 0, nbytes("BF16", shape), "m.safetensors")
        for name, shape in shapes.items()
    )


MODEL = index_of(
    {
        "model.embed_tokens.weight": (512, 256),
        "model.layers.0.q_proj.weight": (256, 256),
        "model.layers.0.mlp.gate.weight": (8, 256),
        "model.layers.0.mlp.experts.gate_up_proj": (4, 256, 512),
        "model.layers.0.norm.weight": (256,),
        "model.layers.1.q_proj.weight": (256, 256),
        "lm_head.weight": (512, 256),
    }
)
Q0, Q1 = (f"model.layers.{n}.q_proj.weight" for n in (0, 1))
STACK = "model.layers.0.mlp.experts.gate_up_proj"


def quantized(
    folder: Path, own: dict[str, Any], model: TensorIndex = MODEL
) -> set[str]:
    """Name what would be quantized under a config."""
    path = write_json(folder / "config.json", {"quantization_config": own})
    found = suppose(open_config(path), model)
    assert found is not None
    return {weight.name for _, weight in found.manifest.weights()}


@each_family
def test_bytes_are_those_that_a_writer_writes(
    run: Run, tmp_path: Path, made: Checkpoint
) -> None:
    packed, tensors = made.write(tmp_path / "packed"), made.tensors()
    shape = made.shape
    if made.dialect == "mxfp4":  # the 16-bit model has the inputs first
        shape = (*shape[:-2], shape[-1], shape[-2])
    dense = {name: tensors[name] for name in ("m.bias", "norm.weight")}
    weight = stored(np.zeros(shape, np.float32), "BF16")
    original = save(tmp_path / "original", dense | {made.weight: weight})
    config = packed / made.config_name
    assert run("--config", config, "--shapes", original, "--format", "json") == 0
    before = run.json
    promised = before["promised"]
    assert before["stored"] is None
    assert run(packed, "--format", "json") == 0
    there = run.json["stored"]
    for key in ("codes", "kept", "parameters", "quantized_parameters", "as_16bit"):
        assert promised[key] == there[key]
    if made.file not in OPEN | WIDE | OTHERS:
        assert promised["total"] == there["total"] - there["headers"]
        assert promised["unknown"] == []
        assert promised["bits_per_weight"] == there["bits_per_weight"]
    if made.dialect != "quanto":  # which names its modules
        assert "because the config names no weights" in promised["assumed"][-1]


@pytest.mark.parametrize(
    ("own", "names"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, {Q0, Q1}),
        (
            {"quant_method": "gptq", "bits": 4, "dynamic": {r"-:.*layers\.0\..*": {}}},
            {Q1},
        ),
        (
            {"quant_method": "gptq", "bits": 4, "lm_head": True},
            {Q0, Q1, "lm_head.weight"},
        ),
        ({"quant_method": "mxfp4"}, {STACK}),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            {Q0, Q1, STACK},
        ),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.1"]},
            {Q0, STACK},
        ),
    ],
    ids=["all", "skipped", "head", "experts", "stacks too", "kept"],
)
def test_which_weights(tmp_path: Path, own: dict[str, Any], names: set[str]) -> None:
    assert quantized(tmp_path, own) == names


def test_mlx_quantizes_tables_too(tmp_path: Path) -> None:
    block = {"quantization": {"bits": 4, "group_size": 64}}
    found = suppose(open_config(write_json(tmp_path / "config.json", block)), MODEL)
    assert found is not None
    names = {weight.name for _, weight in found.manifest.weights()}
    assert {"model.embed_tokens.weight", "lm_head.weight", Q0, Q1} <= names
    assert "all tables" in found.assumed[0]


def test_shapes_that_a_format_has_no_words_for_stay_dense(tmp_path: Path) -> None:
    model = index_of({"a.weight": (64, 256), "b.weight": (64, 250)})
    own = {"quant_method": "metal", "bits": 4, "group_size": 32}
    path = write_json(tmp_path / "config.json", {"quantization_config": own})
    found = suppose(open_config(path), model)
    assert found is not None
    assert [weight.name for _, weight in found.manifest.weights()] == ["a.weight"]
    assert (
        "does not tell how they are stored: 1 linear layer ('b.weight')"
        in (found.assumed[1])
    )


def test_configs_that_declare_their_weights_are_left_alone(tmp_path: Path) -> None:
    config = {"bits": 4, "group_size": 64, "kept_16bit": [], "tensors": {Q0: {}}}
    assert suppose(open_config(write_json(tmp_path / "a.json", config)), MODEL) is None
    broken = write_json(tmp_path / "b.json", {"bits": 4})
    assert suppose(open_config(broken), MODEL) is None


def test_formats_that_are_not_decoded_are_not_supposed(tmp_path: Path) -> None:
    own = {"quant_method": "exl3", "bits": 3.0, "version": "0.0.1"}
    path = write_json(tmp_path / "config.json", {"quantization_config": own})
    assert suppose(open_config(path), MODEL) is None
