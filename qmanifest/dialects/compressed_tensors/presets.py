"""Schemes that compressed-tensors knows by name.

Source: https://github.com/vllm-project/compressed-tensors,
`compressed_tensors/quantization/quant_scheme.py`, `PRESET_SCHEMES`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from qmanifest.dialects.compressed_tensors.args import (
    QuantizationArgs,
    QuantizationScheme,
    Strategy,
)

E4M3: Final = "torch.float8_e4m3fn"
BYTE: Final = "torch.uint8"
_INTEGERS: Final = re.compile(r"W([2-8])A(4|8|16)")
"""Names of integer weights in groups of 128, by bits of weights and activations."""


def _float(
    bits: int,
    strategy: Strategy,
    *,
    group: int | None = None,
    block: list[int] | None = None,
    dynamic: bool = False,
    scale: str | None = None,
) -> QuantizationArgs:
    """Describe symmetric small floats."""
    return QuantizationArgs(
        num_bits=bits,
        type="float",
        strategy=strategy,
        group_size=group,
        block_structure=block,
        dynamic=dynamic,
        scale_dtype=scale,
    )


def _scheme(
    weights: QuantizationArgs, inputs: QuantizationArgs | None = None
) -> QuantizationScheme:
    return QuantizationScheme(targets=[], weights=weights, input_activations=inputs)


@cache
def _named() -> dict[str, QuantizationScheme]:
    """Build the presets whose names follow no rule."""
    tokens = QuantizationArgs(strategy="token", dynamic=True)
    rows = QuantizationArgs(strategy="channel")
    fp8_tokens = _float(8, "token", dynamic=True)
    fp8 = _float(8, "tensor")
    fp8_groups = _float(8, "group", group=128, dynamic=True)
    nvfp4 = _float(4, "tensor_group", group=16, scale=E4M3)
    local = nvfp4.model_copy(update={"dynamic": "local"})
    mx = {bits: _float(bits, "group", group=32, scale=BYTE) for bits in (4, 6, 8)}
    live = {
        bits: args.model_copy(update={"dynamic": True}) for bits, args in mx.items()
    }
    four = QuantizationArgs(num_bits=4, group_size=128, strategy="group")
    return {
        "UNQUANTIZED": QuantizationScheme(targets=[]),
        "W4A16_ASYM": _scheme(four.model_copy(update={"symmetric": False})),
        "W4AFP8": _scheme(four, fp8_tokens),
        "W8A8": _scheme(rows, tokens),
        "INT8": _scheme(rows, tokens),
        "FP8": _scheme(fp8, fp8),
        "FP8_DYNAMIC": _scheme(_float(8, "channel"), fp8_tokens),
        "FP8_BLOCK": _scheme(_float(8, "block", block=[128, 128]), fp8_groups),
        "NVFP4A16": _scheme(nvfp4),
        "NVFP4": _scheme(nvfp4, local),
        "MXFP4A16": _scheme(mx[4]),
        "MXFP4": _scheme(mx[4], live[4]),
        "MXFP4XFP8": _scheme(mx[4], fp8_groups),
        "MXFP6A16": _scheme(mx[6]),
        "MXFP6A8": _scheme(mx[6], live[8]),
        "MXFP8A16": _scheme(mx[8]),
        "MXFP8": _scheme(mx[8], live[8]),
    }


def preset(name: str) -> QuantizationScheme | None:
    """Find a preset by its name, in any case; None where there is none."""
    name = name.upper()
    named = _named().get(name)
    if named is not None:
        return named
    found = _INTEGERS.fullmatch(name)
    if found is None:
        return None
    bits, inputs = int(found[1]), int(found[2])
    if bits > inputs:
        return None
    args = QuantizationArgs(num_bits=bits, group_size=128, strategy="group")
    if inputs == 16:  # noqa: PLR2004 - activations stay as they are
        return _scheme(args)
    tokens = QuantizationArgs(num_bits=inputs, strategy="token", dynamic=True)
    return _scheme(args, tokens)
