"""Models that torchao itself quantizes, saved as transformers saves them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from support.owners import owner

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np

quantization = owner("torchao.quantization")
flattening = owner("torchao.prototype.safetensors.safetensors_support")
configs = owner("torchao.core.config")
mx_formats = owner("torchao.prototype.mx_formats")


def named(kind: str) -> Any:  # noqa: ANN401 - theirs
    """Make one of torchao's configs by a short name."""
    if kind == "int4-groups":
        granularity = owner("torchao.quantization.granularity").PerGroup(32)
        return quantization.IntxWeightOnlyConfig(
            weight_dtype=vars(torch)["int4"],  # which torch's types leave out
            granularity=granularity,
        )
    made = {
        "int8": quantization.Int8WeightOnlyConfig,
        "float8": quantization.Float8WeightOnlyConfig,
        "nvfp4": mx_formats.NVFP4WeightOnlyConfig,
    }
    return made[kind]()


def quantize(weight: torch.Tensor, config: Any) -> Any:  # noqa: ANN401 - theirs
    """Quantize one weight `(N, K)`; give torchao's tensor."""
    n, k = weight.shape
    layer = torch.nn.Linear(k, n, bias=False, dtype=weight.dtype)
    layer.weight = torch.nn.Parameter(weight)
    model = torch.nn.Sequential(layer)
    quantization.quantize_(model, config)
    return model[0].weight


def as_bfloat16(weight: np.ndarray[Any, np.dtype[np.float32]]) -> Any:  # noqa: ANN401 - an array
    """Round a weight to the dtype of the model, which no tensor of int8 tells."""
    return torch.from_numpy(weight).bfloat16().float().numpy()


def flattened(tensors: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Take quantized tensors apart; give their fields, and what describes them."""
    plain = {
        name: each.data if type(each) is torch.nn.Parameter else each
        for name, each in tensors.items()
    }
    flat, metadata = flattening.flatten_tensor_state_dict(plain)
    return {name: each.contiguous() for name, each in flat.items()}, metadata


def quantization_config(
    config: Any,  # noqa: ANN401 - theirs
    kept: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Write the config that transformers writes."""
    return {
        "quant_method": "torchao",
        "quant_type": {"default": configs.config_to_dict(config)},
        "modules_to_not_convert": list(kept) or None,
        "include_input_output_embeddings": False,
        "untie_embedding_weights": False,
    }


def save(
    folder: Path,
    tensors: Mapping[str, Any],
    config: Any,  # noqa: ANN401 - theirs
    beside: Mapping[str, Any],
) -> Path:
    """Write quantized and plain tensors with their descriptions, and the config.

    Args:
        folder: where to.
        tensors: by their names in the model.
        config: torchao's own.
        beside: the model's config.

    """
    flat, metadata = flattened(tensors)
    save_file(flat, folder / "model.safetensors", {"format": "pt", **metadata})
    document = {**beside, "quantization_config": quantization_config(config)}
    (folder / "config.json").write_text(json.dumps(document))
    return folder
