"""Vectors of small floats as checkpoints: fp8, modelopt, mxfp4 and metal, end to end.

Each is written as its owner's loaders expect it, opened, checked to the last byte, and
rebuilt; the result is the owner's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
import torch
from support.golden import assert_same, golden
from support.models import save, write_json

from qmanifest import CheckpointWeights, open_checkpoint, validate
from qmanifest.backends.reference import dequantize
from qmanifest.packings.arrays import Stored, from_float32, to_float32

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODULE: Final = "model.layers.0.mlp.up_proj"
EXPERTS: Final = "model.layers.0.mlp.experts.gate_up_proj"
Config = dict[str, Any]


def read_back(
    folder: Path,
    files: Mapping[str, Config],
    tensors: Mapping[str, Stored],
    name: str = f"{MODULE}.weight",
) -> Stored:
    """Write tensors and configs, find nothing wrong with them, and rebuild a weight."""
    for file, config in files.items():
        write_json(folder / file, config)
    save(folder, tensors)
    findings = validate(folder, deep=True).findings
    assert [each.message for each in findings if each.severity != "note"] == []
    source = CheckpointWeights(open_checkpoint(folder))
    scheme, shape = source.weight(name)
    return Stored("F32", dequantize(scheme, source.stored(name), shape))


def fp8(**said: object) -> dict[str, Config]:
    config = {"quant_method": "fp8", "weight_block_size": [32, 32], **said}
    return {"config.json": {"model_type": "toy", "quantization_config": config}}


def modelopt(**said: object) -> dict[str, Config]:
    producer = {"name": "modelopt", "version": "0.47.0"}
    return {"hf_quant_config.json": {"producer": producer, "quantization": said}}


@pytest.mark.parametrize("suffix", ["weight_scale_inv", "scale", "qscale_weight"])
def test_fp8_blocks(suffix: str, tmp_path: Path) -> None:
    vectors = golden("fp8_block32_float")
    tensors = {
        f"{MODULE}.weight": vectors["m.weight"],
        f"{MODULE}.{suffix}": vectors["m.weight_scale_inv"],
    }
    made = read_back(tmp_path, fp8(activation_scheme="dynamic"), tensors)
    assert_same(made, vectors["dequant_f32"])


@pytest.mark.parametrize("dtype", ["U8", "F8_E8M0"])
def test_fp8_blocks_of_powers_of_two(dtype: str, tmp_path: Path) -> None:
    vectors = golden("fp8_block32_ue8m0")
    tensors = {
        f"{MODULE}.weight": vectors["m.weight"],
        f"{MODULE}.weight_scale_inv": Stored(
            dtype, vectors["m.weight_scale_inv_u8"].array
        ),
    }
    made = read_back(tmp_path, fp8(scale_fmt="ue8m0"), tensors)
    assert_same(made, vectors["dequant_f32"])


def test_fp8_blocks_of_stacked_experts(tmp_path: Path) -> None:
    one, two = golden("fp8_block32_float"), golden("fp8_block32_ue8m0")
    scales = np.exp2(two["m.weight_scale_inv_u8"].array.astype(np.float32) - 127)
    tensors = {
        EXPERTS: Stored(
            "F8_E4M3", np.stack([one["m.weight"].array, two["m.weight"].array])
        ),
        f"{EXPERTS}_scale_inv": Stored(
            "F32", np.stack([one["m.weight_scale_inv"].array, scales])
        ),
    }
    made = read_back(tmp_path, fp8(), tensors, EXPERTS)
    expected = [each["dequant_f32"].array for each in (one, two)]
    np.testing.assert_array_equal(made.array, np.stack(expected))


@pytest.mark.parametrize("suffix", ["weight_scale_inv", "weight_scale"])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_fp8_with_one_scale(
    suffix: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Every block has its own power of two here: a scale of 1 leaves the codes."""
    vectors = golden("fp8_block32_ue8m0")
    scale = np.full(shape, 0.5, np.float32)
    tensors = {
        f"{MODULE}.weight": vectors["m.weight"],
        f"{MODULE}.{suffix}": Stored("F32", scale),
    }
    made = read_back(tmp_path, fp8(weight_block_size=None), tensors)
    exponents = vectors["m.weight_scale_inv_u8"].array.astype(np.float32) - 127
    blocks = np.kron(np.exp2(exponents), np.ones((32, 32), np.float32))
    np.testing.assert_array_equal(
        made.array / 0.5, vectors["dequant_f32"].array / blocks
    )


def test_nvfp4(tmp_path: Path) -> None:
    vectors = dict(golden("modelopt_nvfp4"))
    expected, _ = vectors.pop("dequant_f32"), vectors.pop("input")
    tensors = {f"{MODULE}.{name}": part for name, part in vectors.items()}
    tensors[f"{MODULE}.input_scale"] = vectors["weight_scale_2"]
    made = read_back(tmp_path, modelopt(quant_algo="NVFP4", group_size=16), tensors)
    # their table has no negative zero
    np.testing.assert_array_equal(made.array, expected.array)


def test_nvfp4_beside_fp8(tmp_path: Path) -> None:
    vectors = golden("modelopt_nvfp4")
    expert, attention = "layers.0.ffn.experts.0.w1", "layers.0.attn.wq_a"
    blocks = golden("fp8_block32_ue8m0")
    tensors = {
        f"{attention}.weight": blocks["m.weight"],
        f"{attention}.scale": Stored("F8_E8M0", blocks["m.weight_scale_inv_u8"].array),
        **{
            f"{expert}.{name}": vectors[name]
            for name in ("weight", "weight_scale", "weight_scale_2")
        },
    }
    mixed = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "layers.0.ffn.experts": {"quant_algo": "NVFP4", "group_size": 16}
        },
    }
    files = fp8(scale_fmt="ue8m0", ignore=["*.attn.*"], **mixed)
    files |= modelopt(exclude_modules=["*.attn.*"], **mixed)
    made = read_back(tmp_path, files, tensors, f"{expert}.weight")
    np.testing.assert_array_equal(made.array, vectors["dequant_f32"].array)
    source = CheckpointWeights(open_checkpoint(tmp_path))
    scheme, shape = source.weight(f"{attention}.weight")
    whole = dequantize(scheme, source.stored(f"{attention}.weight"), shape)
    assert_same(Stored("F32", whole), blocks["dequant_f32"])


@pytest.mark.parametrize("algorithm", ["W4A16_AWQ", "W4A8_AWQ"])
def test_int4(algorithm: str, tmp_path: Path) -> None:
    vectors = golden("modelopt_int4_awq_pack")
    scales, codes = vectors["weight_scale"], vectors["codes_int8"].array
    tensors = {
        f"{MODULE}.weight": vectors["weight"],
        f"{MODULE}.weight_scale": scales,
        f"{MODULE}.pre_quant_scale": Stored("F32", np.ones(128, np.float32)),
    }
    if algorithm == "W4A8_AWQ":
        second = Stored("F32", np.full((), 0.25, np.float32))
        tensors[f"{MODULE}.weight_scale_2"] = second
    made = read_back(tmp_path, modelopt(quant_algo=algorithm, group_size=32), tensors)
    expected = codes.astype(np.float32) * np.repeat(scales.array, 32, axis=1)
    np.testing.assert_array_equal(made.array, expected)


def test_fp8_blocks_as_modelopt_spaces_them(tmp_path: Path) -> None:
    """ModelOpt keeps the shape of its reduction: 1 between the blocks of 128."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 127, (384, 256)).astype(np.uint8)
    scales = np.exp2(rng.integers(-3, 3, (3, 2))).astype(np.float32)
    tensors = {
        f"{MODULE}.weight": Stored("F8_E4M3", codes),
        f"{MODULE}.weight_scale": Stored("F32", scales.reshape(3, 1, 2, 1)),
    }
    made = read_back(tmp_path, modelopt(quant_algo="fp8_pb_wo"), tensors)
    values = torch.from_numpy(codes).view(torch.float8_e4m3fn).float().numpy()
    blocks = np.kron(scales, np.ones((128, 128), np.float32))
    np.testing.assert_array_equal(made.array, values * blocks)


def test_gpt_oss(tmp_path: Path) -> None:
    vectors = golden("gptoss_mxfp4")
    tensors = {
        f"{EXPERTS}_blocks": vectors["gate_up_proj_blocks"],
        f"{EXPERTS}_scales": vectors["gate_up_proj_scales"],
        f"{EXPERTS}_bias": Stored("BF16", np.ones((2, 6), np.uint16)),
        "lm_head.weight": Stored("BF16", np.ones((8, 96), np.uint16)),
    }
    keeps = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]
    config = {"quant_method": "mxfp4", "modules_to_not_convert": keeps}
    files = {"config.json": {"model_type": "toy", "quantization_config": config}}
    made = read_back(tmp_path, files, tensors, EXPERTS)
    turned = Stored("F32", np.ascontiguousarray(made.array.swapaxes(-1, -2)))
    assert_same(from_float32(turned.array, "BF16"), vectors["dequant_E_in_out"])


@pytest.mark.parametrize("prefix", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_metal(bits: int, prefix: str, tmp_path: Path) -> None:
    vectors = golden(f"mlx_affine_b{bits}_g64")
    found = {key: vectors[f"{prefix}.{key}"] for key in ("scales", "biases", "dequant")}
    if prefix == "bf16":  # they were stored as bit patterns
        found = {key: Stored("BF16", each.array) for key, each in found.items()}
    tensors = {
        f"{MODULE}.weight": vectors[f"{prefix}.weight"],
        f"{MODULE}.scales": found["scales"],
        f"{MODULE}.qbiases": found["biases"],
    }
    config = {"quant_method": "metal", "bits": bits, "group_size": 64}
    files = {"config.json": {"hidden_size": 256, "quantization_config": config}}
    made = read_back(tmp_path, files, tensors)
    np.testing.assert_array_equal(made.array, to_float32(found["dequant"]))
