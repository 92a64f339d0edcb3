"""Layers that compressed-tensors itself compresses, and decompresses to compare.

Scales are min-max over the weights, as the library's own observers take them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.format import infer_module_format
from compressed_tensors.quantization import (
    QuantizationConfig,
    QuantizationScheme,
    preset_name_to_scheme,
)
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import save_file
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from compressed_tensors.quantization import QuantizationArgs

Tensors = dict[str, Tensor]


def scheme_named(preset: str) -> QuantizationScheme:
    """Give a preset's scheme with its format, for all linear layers."""
    return with_format(preset_name_to_scheme(preset, ["Linear"]))


def with_format(scheme: QuantizationScheme) -> QuantizationScheme:
    """Fill in the format that the library infers."""
    scheme.format = scheme.format or infer_module_format(torch.nn.Linear, scheme)
    return scheme


def compress(weight: Tensor, scheme: QuantizationScheme) -> Tensors:
    """Compress one weight `(N, K)`; give its tensors by their names in the module."""
    args = scheme.weights
    low, high = _ranges(weight, args)
    extra: Tensors = {}
    if args.strategy == "tensor_group":
        extra["weight_global_scale"] = generate_gparam(weight.min(), weight.max())
    scale, zero = calculate_qparams(low, high, args, extra.get("weight_global_scale"))
    if args.strategy == "tensor":
        scale, zero = scale.reshape(1), zero.reshape(1)
    if not args.symmetric:
        extra["weight_zero_point"] = zero
    state = {"weight": weight, "weight_scale": scale.to(weight.dtype), **extra}
    if args.strategy == "tensor_group":
        state["weight_scale"] = scale
    found: Tensors = _compressor(scheme).compress(state, scheme)
    inputs = scheme.input_activations
    if inputs is not None and inputs.dynamic is False:
        found["input_scale"] = torch.tensor([0.5], dtype=weight.dtype)
    if inputs is not None and inputs.dynamic == "local":
        found["input_global_scale"] = torch.tensor([96.0])
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def decompress(tensors: Mapping[str, Tensor], scheme: QuantizationScheme) -> Tensor:
    """Give the weight that the library makes of compressed tensors again."""
    found: Tensor = _compressor(scheme).decompress(dict(tensors), scheme)["weight"]
    return found.detach()


def _compressor(scheme: QuantizationScheme) -> Any:  # noqa: ANN401 - a class of the library
    return BaseCompressor.get_value_from_registry(scheme.format)


def _ranges(weight: Tensor, args: QuantizationArgs) -> tuple[Tensor, Tensor]:
    """Find the least and the largest weight of every block."""
    rows, columns = weight.shape
    if args.strategy == "tensor":
        return weight.min(), weight.max()
    if args.strategy == "block":
        high, wide = args.block_structure
        padded = torch.nn.functional.pad(weight, (0, -columns % wide, 0, -rows % high))
        down, across = padded.shape[0] // high, padded.shape[1] // wide
        blocks = padded.reshape(down, high, across, wide)
        return blocks.amin((1, 3)), blocks.amax((1, 3))
    groups = weight.reshape(rows, -1, args.group_size or columns)
    return groups.amin(-1), groups.amax(-1)


def save(
    folder: Path,
    modules: Mapping[str, Mapping[str, Tensor]],
    config: Mapping[str, Any],
    *,
    beside: Mapping[str, Any] | None = None,
    others: Mapping[str, Tensor] | None = None,
) -> Path:
    """Write compressed modules and their config as the library lays them out.

    Args:
        folder: where to.
        modules: tensors of each module, by module and by name in it.
        config: the quantization config.
        beside: the model's own config.
        others: tensors that are not quantized, by their whole names.

    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"{module}.{name}": tensor
        for module, own in modules.items()
        for name, tensor in own.items()
    }
    save_file({**tensors, **(others or {})}, folder / "model.safetensors")
    whole = {**(beside or {}), "quantization_config": dict(config)}
    (folder / "config.json").write_text(json.dumps(whole, indent=1, sort_keys=True))
    return folder


def config_of(
    *schemes: QuantizationScheme, ignore: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Write the config that the library writes for some groups."""
    formats = {scheme.format for scheme in schemes}
    config = QuantizationConfig(
        config_groups={f"group_{n}": scheme for n, scheme in enumerate(schemes)},
        format=formats.pop() if len(formats) == 1 else "mixed-precision",
        quantization_status="compressed",
        ignore=list(ignore),
    )
    written: dict[str, Any] = json.loads(config.model_dump_json())
    return {"version": "0.20.1", "sparsity_config": {}, **written}
