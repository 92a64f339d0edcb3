"""The two configs that the founding dialects were made for, built by loops."""

from __future__ import annotations

from typing import Any, Final

BACKBONE_LAYERS: Final = 28
KEPT_LAYERS: Final = (2, 27)
"""Layers whose `down_proj` was too sensitive to quantize."""
HIDDEN: Final = 2048
MATRICES: Final = {
    "self_attn.qkv_proj": [4096, HIDDEN],
    "mlp.gate_up_proj": [12288, HIDDEN],
    "self_attn.o_proj": [HIDDEN, HIDDEN],
    "mlp.down_proj": [HIDDEN, 6144],
}
TABLES: Final = {
    "embed_tokens.weight": [194548, HIDDEN],
    "table.weight": [65536, HIDDEN],
}
XLMR_LAYERS: Final = 24
XLMR_MATRICES: Final = (
    *(f"attention.self.{each}" for each in ("query", "key", "value")),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)


def tensor_map() -> dict[str, Any]:
    """A 28-layer audio language model: 8-bit groups of 32, its depth decoder kept."""
    down = [f"layers.{layer}.mlp.down_proj.weight" for layer in KEPT_LAYERS]
    depth = [
        f"groups.{group}.{layer}.{matrix}.weight"
        for group in range(11)
        for layer in range(4)
        for matrix in ("qkv", "o", "f1", "f2")
    ]
    heads = [f"heads.{head}.weight" for head in range(31)]
    shapes = {
        f"layers.{layer}.{matrix}.weight": shape
        for layer in range(BACKBONE_LAYERS)
        for matrix, shape in MATRICES.items()
    }
    return {
        "bits": 8,
        "group_size": 32,
        "mode": "affine",
        "kept_16bit": sorted([*down, *depth, *heads, "in_proj.weight"]),
        "tensors": {
            name: {"bits": 8, "group_size": 32, "shape": shape}
            for name, shape in (shapes | TABLES).items()
            if name not in down
        },
        "scan": {
            "file": "scans/of-8b64.json",
            "keep_backbone": 2,
            "keep_depth": 999,
            "rule": "the most sensitive ones of either part are kept",
        },
    }


def q4_lists() -> dict[str, Any]:
    """An embedder and a reranker of 24 layers: 4-bit groups of 64."""
    names = [
        f"encoder.layer.{layer}.{matrix}.weight"
        for layer in range(XLMR_LAYERS)
        for matrix in XLMR_MATRICES
    ]
    return {
        "quant": "q4",
        "group": 64,
        "scheme": "affine by groups, 4-bit codes and fp16 compute",
        "protected_fp16": ["classifier", "pooler", "embeddings", "LayerNorm"],
        "emb_q4": sorted(names),
        "rr_q4": sorted(f"roberta.{name}" for name in names),
    }
