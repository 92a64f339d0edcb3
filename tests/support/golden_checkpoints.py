"""Golden vectors as checkpoints: one weight `m.weight` of each family, and its config.

Beside the weight lie a bias, which quanto needs to know the outputs, and a norm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from support.golden import golden, metadata
from support.models import save, write_json

from qmanifest.packings.arrays import Stored, to_bytes, to_float32
from qmanifest.testing import write_raw

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.packings.arrays import Float32
    from qmanifest.tensors import Shape

QWEIGHT: Final = {key: f"m.{key}" for key in ("qweight", "scales")}
PACKED: Final = {f"weight_{key}": f"m.weight_{key}" for key in ("packed", "scale")}
SHAPED: Final = PACKED | {"weight_shape": "m.weight_shape"}
BNB: Final = {
    key: f"m.{key}"
    for end in ("", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map")
    for key in [f"weight{end}"]
}
STATE: Final = ".quant_state.bitsandbytes__"
_CONFIG: Final = "config.json"


def _gptq(bits: int, *, version: int, **said: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    name = "gptq" if version == 1 else "gptq_v2"
    own = {"quant_method": "gptq", "bits": bits, "group_size": 32, "sym": False}
    return {"quantization_config": own | {"checkpoint_format": name} | said}


def _nvfp4() -> dict[str, Any]:
    """Config of compressed-tensors' NVFP4, whose inputs are quantized too."""
    form = {"strategy": "tensor_group", "group_size": 16}
    made = _ct(4, "float", "nvfp4-pack-quantized", **form)
    (group,) = made["quantization_config"]["config_groups"].values()
    group["input_activations"] = group["weights"] | {"dynamic": "local"}
    return made


def _ct(bits: int, kind: str, form: str, **said: Any) -> dict[str, Any]:  # noqa: ANN401 - likewise
    weights = {"num_bits": bits, "type": kind, "symmetric": True, **said}
    group = {"targets": ["Linear"], "weights": weights, "format": form}
    own = {"quant_method": "compressed-tensors", "format": form, "ignore": []}
    return {"quantization_config": {**own, "config_groups": {"group_0": group}}}


@dataclass(frozen=True)
class Checkpoint:
    """A weight of a file of golden vectors, as its family stores it."""

    file: str
    dialect: str
    config: dict[str, Any]
    names: dict[str, str]
    """Names in the checkpoint by key of the file."""
    expected: str = "dequant"
    """The key of what the owner rebuilt."""
    dtype: str = "F32"
    """What `unpack` writes it in."""
    turned: bool = False
    """Whether the owner's has the last two axes exchanged."""
    config_name: str = _CONFIG
    weight: str = "m.weight"
    more: dict[str, Stored] = field(default_factory=dict)
    """Tensors that are stored too."""

    @property
    def dense(self) -> Float32:
        """What the owner rebuilt, `(..., out_features, in_features)`."""
        values = to_float32(golden(self.file)[self.expected])
        values = np.swapaxes(values, -1, -2) if self.turned else values
        return np.array(values, order="C")

    @property
    def shape(self) -> Shape:
        """The logical shape."""
        return self.dense.shape

    def tensors(self) -> dict[str, Stored]:
        """Everything that is stored."""
        vectors = golden(self.file)
        own = {name: vectors[key] for key, name in self.names.items()}
        outputs = self.shape[-2]
        bias = np.arange(outputs, dtype=np.float32) / 4
        norm = Stored("F32", np.ones(self.shape[-1], np.float32))
        return own | self.more | {"m.bias": Stored("F32", bias), "norm.weight": norm}

    def write(self, folder: Path) -> Path:
        """Write the checkpoint with its config."""
        said = metadata(self.file)
        described = {
            key.replace("0.", "m."): value.replace("0.", "m.")
            for key, value in said.items()
            if key in {"tensor_names", "0.weight"}
        }
        if self.dialect == "torchao":
            folder.mkdir(parents=True, exist_ok=True)
            raw = {
                n: (t.dtype, t.shape, to_bytes(t)) for n, t in self.tensors().items()
            }
            write_raw(folder / "model.safetensors", raw, metadata=described)
        else:
            save(folder, self.tensors())
        write_json(folder / self.config_name, self.config)
        return folder


def _hqq(bits: int, axis: int) -> Checkpoint:
    """A file of HQQ, which says its shape in a tensor."""
    file = f"hqq_b{bits}_axis{axis}"
    shape = np.array(json.loads(metadata(file)["shape"]), np.int64)
    own = {"weight_quant_params": {"nbits": bits, "group_size": 64, "axis": axis}}
    return Checkpoint(
        file,
        "hqq",
        {"quantization_config": {"quant_method": "hqq", "quant_config": own}},
        {key: f"m.{key}" for key in ("W_q", "scale", "zero")},
        expected="dequant_f32",
        more={"m.shape": Stored("I64", shape)},
    )


def _torchao(file: str, kind: str) -> Checkpoint:
    keys = {f"0._weight_{key}" for key in ("qdata", "scale", "zero_point")}
    keys |= {"0._weight_per_tensor_scale"}
    default = {"_type": kind, "_version": 2, "_data": {}}
    own = {"quant_method": "torchao", "quant_type": {"default": default}}
    said = {"torch_dtype": "bfloat16", "quantization_config": own}
    return Checkpoint(
        f"torchao_{file}",
        "torchao",
        said,
        {
            key: f"m.{key[2:]}"
            for key in sorted(keys & golden(f"torchao_{file}").keys())
        },
        dtype="BF16",
    )


_ROW_OF_8: Final = {"group_size": 128, "strategy": "group"}
_BLOCKS: Final = {"quant_method": "fp8", "weight_block_size": [32, 32]}
_NVFP4: Final = {"quant_algo": "NVFP4", "group_size": 16}
CHECKPOINTS: Final = (
    Checkpoint(
        "gptq_b4_asym_cont_actorder",
        "gptq",
        _gptq(4, version=1, desc_act=True),
        QWEIGHT | {"qzeros_v1": "m.qzeros", "g_idx": "m.g_idx"},
        "dequant_in_out_f32",
        "F16",
        turned=True,
    ),
    Checkpoint(
        "gptq_b3_asym_cont",
        "gptq",
        _gptq(3, version=2, desc_act=False),
        QWEIGHT | {"qzeros_v2": "m.qzeros", "g_idx": "m.g_idx"},
        "dequant_in_out_f32",
        "F16",
        turned=True,
    ),
    Checkpoint(
        "awq_gemm_b4_g64",
        "awq",
        {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64}},
        QWEIGHT | {"qzeros": "m.qzeros"},
        "dequant_in_out",
        "F16",
        turned=True,
    ),
    Checkpoint(
        "bnb_nf4_bfloat16",
        "bitsandbytes",
        {
            "quantization_config": {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
            }
            | {"bnb_4bit_quant_type": "nf4"}
        },
        {k: v for k, v in BNB.items() if "nested" not in k}
        | {f"weight{STATE}nf4": f"m.weight{STATE}nf4"},
        dtype="BF16",
    ),
    Checkpoint(
        "bnb_fp4_double_float32",
        "bitsandbytes",
        {
            "quantization_config": {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
            }
            | {"bnb_4bit_quant_type": "fp4", "bnb_4bit_use_double_quant": True}
        },
        BNB | {f"weight{STATE}fp4": f"m.weight{STATE}fp4"},
        dtype="F32",
    ),
    Checkpoint(
        "bnb_int8",
        "bitsandbytes",
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
        {key: f"m.{key}" for key in ("weight", "SCB", "weight_format")},
    ),
    _hqq(4, 1),
    _hqq(3, 0),
    Checkpoint(
        "quanto_qint4",
        "quanto",
        {"m": {"weights": "qint4", "activations": "none"}},
        {
            f"0.{key}": f"m.{key}"
            for key in ("weight._data._data", "weight._scale", "weight._shift")
        },
        config_name="quanto_qmap.json",
    ),
    _torchao("NVFP4WeightOnlyConfig", "NVFP4WeightOnlyConfig"),
    _torchao("int8wo", "Int8WeightOnlyConfig"),
    Checkpoint(
        "modelopt_nvfp4",
        "modelopt",
        {"producer": {"name": "modelopt"}, "quantization": _NVFP4},
        {f"weight{end}": f"m.weight{end}" for end in ("", "_scale", "_scale_2")},
        "dequant_f32",
        "BF16",
        config_name="hf_quant_config.json",
    ),
    Checkpoint(
        "gptoss_mxfp4",
        "mxfp4",
        {"quantization_config": {"quant_method": "mxfp4"}},
        {
            f"gate_up_proj_{end}": f"m.experts.gate_up_proj_{end}"
            for end in ("blocks", "scales")
        },
        "dequant_E_in_out",
        "BF16",
        turned=True,
        weight="m.experts.gate_up_proj",
    ),
    Checkpoint(
        "fp8_block32_float",
        "fp8",
        {"torch_dtype": "bfloat16", "quantization_config": _BLOCKS},
        {f"m.weight{end}": f"m.weight{end}" for end in ("", "_scale_inv")},
        "dequant_f32",
        "BF16",
    ),
    Checkpoint(
        "ct_W3A16",
        "compressed-tensors",
        _ct(3, "int", "pack-quantized", **_ROW_OF_8),
        SHAPED,
        dtype="BF16",
    ),
    Checkpoint(
        "ct_W4A16_ASYM",
        "compressed-tensors",
        _ct(4, "int", "pack-quantized", **_ROW_OF_8, symmetric=False),
        SHAPED | {"weight_zero_point": "m.weight_zero_point"},
        dtype="BF16",
    ),
    Checkpoint(
        "ct_NVFP4",
        "compressed-tensors",
        _nvfp4(),
        PACKED
        | {
            f"{each}_global_scale": f"m.{each}_global_scale"
            for each in ("weight", "input")
        },
        dtype="BF16",
    ),
)
"""One or two of each family."""
