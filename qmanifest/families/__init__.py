"""Families: how formats call the stored tensors of a quantized weight.

A family is evidence, not a promise: it says which stored tensors are codes and which
only serve them, whatever the config calls itself. Dialects pick those that they read.
To add one, add a row to `FAMILIES`; where two rows fit a tensor, the first counts.
"""

from __future__ import annotations

from typing import Final

from qmanifest.families.base import DENSE, F8, WORDS, Family, PartNames, swapped
from qmanifest.families.floats import (
    BLOCK_FP8,
    EXPERT_FP8,
    EXPERT_SCALED,
    GPT_OSS,
    MISTRAL_FP8,
    OWN_FP8,
    SCALED,
)
from qmanifest.families.integers import (
    GEMMA,
    GEMMA_TABLE,
    GPTQ,
    HQQ,
    HQQ_SETTINGS,
    MARLIN,
    PACKED,
    PRUNED,
    QUANTO,
    QUANTO_PACKED,
    TORCHAO,
)
from qmanifest.families.mlx import METAL, MLX, MLX_NAMES
from qmanifest.families.tables import AQLM, BNB4, BNB8, EXL2, EXL3, HIGGS, SPQR, VPTQ

FAMILIES: Final = (
    *(GEMMA, GEMMA_TABLE, AQLM, VPTQ, SPQR, HIGGS),
    *(GPTQ, MARLIN, PACKED, BNB4, BNB8, BLOCK_FP8, OWN_FP8, MISTRAL_FP8, SCALED),
    *(EXPERT_FP8, EXPERT_SCALED, GPT_OSS),
    *(*TORCHAO, HQQ, QUANTO_PACKED, QUANTO, EXL2, EXL3, PRUNED),
    *(METAL, MLX),
)


def is_turned(names: PartNames) -> bool:
    """Whether weights of these names are `(..., in, out)` in the 16-bit model."""
    return any(each.turned and each.names == names for each in FAMILIES)


__all__ = [
    "AQLM",
    "BLOCK_FP8",
    "BNB4",
    "BNB8",
    "DENSE",
    "EXL2",
    "EXL3",
    "EXPERT_FP8",
    "EXPERT_SCALED",
    "F8",
    "FAMILIES",
    "GEMMA",
    "GEMMA_TABLE",
    "GPTQ",
    "GPT_OSS",
    "HIGGS",
    "HQQ",
    "HQQ_SETTINGS",
    "MARLIN",
    "METAL",
    "MISTRAL_FP8",
    "MLX",
    "MLX_NAMES",
    "OWN_FP8",
    "PACKED",
    "PRUNED",
    "QUANTO",
    "QUANTO_PACKED",
    "SCALED",
    "SPQR",
    "TORCHAO",
    "VPTQ",
    "WORDS",
    "Family",
    "PartNames",
    "is_turned",
    "swapped",
]
