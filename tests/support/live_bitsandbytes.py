"""Weights that bitsandbytes itself quantizes, laid out as transformers saves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.owners import owner

if TYPE_CHECKING:
    from torch import Tensor

functional = owner("bitsandbytes.functional")
BLOCK = 64


def config(*, bits: int, nested: bool = False, skip: tuple[str, ...]) -> dict[str, Any]:
    """Write the config that transformers writes, its second copies included."""
    return {
        "quant_method": "bitsandbytes",
        "_load_in_4bit": bits == 4,
        "_load_in_8bit": bits == 8,
        "load_in_4bit": bits == 4,
        "load_in_8bit": bits == 8,
        "llm_int8_threshold": 6.0,
        "llm_int8_skip_modules": list(skip),
        "llm_int8_enable_fp32_cpu_offload": False,
        "llm_int8_has_fp16_weight": False,
        "bnb_4bit_compute_dtype": "float32",
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": nested,
        "bnb_4bit_quant_storage": "uint8",
    }


def four_bits(
    name: str, weight: Tensor, *, nested: bool
) -> tuple[dict[str, Tensor], Tensor]:
    """Quantize `X.weight` to NF4; give its tensors, and the library's own weight."""
    words, state = functional.quantize_4bit(
        weight, blocksize=BLOCK, compress_statistics=nested, quant_type="nf4"
    )
    beside = state.as_dict(packed=True)
    tensors = {name: words, **{f"{name}.{key}": each for key, each in beside.items()}}
    return tensors, functional.dequantize_4bit(words, state)


def eight_bits(name: str, weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Quantize `X.weight` to rows of int8; give its tensors, and the library's own."""
    codes, absmax, _ = functional.int8_vectorwise_quant(weight.half())
    module = name.removesuffix(".weight")
    tensors = {
        name: codes,
        f"{module}.SCB": absmax,
        f"{module}.weight_format": absmax.new_zeros(()).byte(),
    }
    return tensors, functional.int8_vectorwise_dequant(codes, absmax)
