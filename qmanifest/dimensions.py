"""Logical widths from a model's own `config.json`: the witness most checkpoints have.

Packed columns and scale columns fix only `bits x group_size`. How many inputs a
matrix has is said by the model's dimensions, for the modules that most families of
transformers call alike. A name that is not known to follow them has no witness here:
a wrong width that is half or twice the right one would accuse a sound checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Width: TypeAlias = tuple[int, str]
"""A number of inputs, and the keys that it comes from."""

TEXT_CONFIGS: Final = ("text_config", "llm_config", "language_config")
HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "dim")
EMBEDDED: Final = ("embedding_size", "word_embed_proj_dim", *HIDDEN)
INNER: Final = (
    "intermediate_size_mlp",
    "intermediate_size",
    "ffn_dim",
    "n_inner",
    "d_ff",
)
HEADS: Final = ("num_attention_heads", "n_head", "num_heads")
HEAD_WIDTH: Final = ("v_head_dim", "head_dim")
SHARED_INNER: Final = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
)
SHARED_EXPERTS: Final = (
    "n_shared_experts",
    "num_shared_experts",
    "moe_num_shared_experts",
)

UNEVEN: Final = ("attention_hidden_size", "block_configs", "depths", "hidden_sizes")
"""Keys of models whose layers are of several widths."""
UNEVEN_HEADS: Final = ("global_head_dim", "swa_head_dim", "swa_num_attention_heads")
"""Keys of models whose layers have several kinds of attention."""
UNEVEN_INNER: Final = ("use_double_wide_mlp",)

ELSEWHERE: Final = (
    *("vision", "visual", "image", "audio", "speech", "depth", "depformer", "talker"),
    *("projector", "connector", "adapter", "resampler", "perceiver", "qformer"),
    *("cross", "predictor"),
)
"""Parts of a name that belong to a model, or a bridge, with dimensions of its own."""
EMBEDDINGS: Final = frozenset(("embed_tokens", "wte", "word_embeddings", "lm_head"))
QUERIES: Final = frozenset(
    (
        *("q_proj", "k_proj", "v_proj", "qkv_proj", "query", "key", "value"),
        *("c_attn", "query_key_value"),
    )
)
OUTPUTS: Final = frozenset(("o_proj", "out_proj"))
ATTENTIONS: Final = ("self_attn", "attn", "attention", "self_attention", "self")
"""What the module around a query or an output is called."""
ENTRIES: Final = frozenset(
    ("gate_proj", "up_proj", "gate_up_proj", "fc1", "c_fc", "dense_h_to_4h")
)
"""Modules that take the hidden state into the inner layer."""
EXITS: Final = frozenset(("down_proj", "fc2", "dense_4h_to_h"))
"""Modules that take the inner layer back."""


def in_features(name: str, config: Mapping[str, Any]) -> Width | None:
    """Say how many inputs the weight `name` has, and which keys say so.

    Args:
        name: the weight's name, `model.layers.0.mlp.up_proj.weight`.
        config: the model's `config.json`, as parsed.

    Returns:
        The width and the keys that it comes from, or None where they do not say.

    """
    *parents, module = name.removesuffix(".weight").split(".")
    if any(part in parent for parent in parents for part in ELSEWHERE):
        return None
    scope = _scope(config)
    if module in EMBEDDINGS:
        return _first(scope, EMBEDDED)
    numbered = any(parent.isdecimal() for parent in parents)
    if not numbered or any(scope.get(key) for key in UNEVEN):
        return None
    if parents[-1] in ATTENTIONS:
        return _attention(module, scope)
    return _feed_forward(parents, module, scope)


def hidden_size(config: Mapping[str, Any]) -> int | None:
    """Read the width of the language model's hidden state."""
    found = _first(_scope(config), HIDDEN)
    return None if found is None else found[0]


def _scope(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Pick the object that has the language model's dimensions."""
    for key in TEXT_CONFIGS:
        inner = config.get(key)
        if isinstance(inner, dict) and _first(inner, HIDDEN) is not None:
            return inner
    return config


def _first(scope: Mapping[str, Any], keys: Sequence[str]) -> Width | None:
    """Read the first key that holds a positive whole number."""
    for key in keys:
        value = scope.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value, key
    return None


def _times(one: Width | None, other: Width | None) -> Width | None:
    """Multiply two numbers, where both are known."""
    if one is None or other is None:
        return None
    return one[0] * other[0], f"{one[1]} x {other[1]}"


def _attention(module: str, scope: Mapping[str, Any]) -> Width | None:
    """Find the inputs of a module of self-attention."""
    if module in OUTPUTS:
        return _heads(scope)
    return _first(scope, HIDDEN) if module in QUERIES else None


def _heads(scope: Mapping[str, Any]) -> Width | None:
    """Multiply heads by head width, which need not make the hidden size."""
    if any(scope.get(key) for key in UNEVEN_HEADS):
        return None
    heads, width = _first(scope, HEADS), _first(scope, HEAD_WIDTH)
    if heads is not None and width is None:
        return _first(scope, HIDDEN)
    return _times(heads, width)


def _feed_forward(
    parents: Sequence[str], module: str, scope: Mapping[str, Any]
) -> Width | None:
    """Find the inputs of a module of the feed-forward part, or of BERT's `dense`."""
    if module == "dense" and "layer" in parents:
        is_exit = parents[-1] == "output" and "attention" not in parents
        return _first(scope, INNER if is_exit else HIDDEN)
    if module in ENTRIES:
        latent = _first(scope, ("moe_latent_size",)) if _is_routed(parents) else None
        return latent or _first(scope, HIDDEN)
    return _inner(parents, scope) if module in EXITS else None


def _is_shared(parents: Sequence[str]) -> bool:
    """Whether a module is of the experts that every token goes through."""
    return any(parent.startswith("share") for parent in parents)


def _is_routed(parents: Sequence[str]) -> bool:
    """Whether a module is of an expert that a router chooses."""
    expert = any("expert" in parent or parent == "switch_mlp" for parent in parents)
    return expert and not _is_shared(parents)


def _inner(parents: Sequence[str], scope: Mapping[str, Any]) -> Width | None:
    """Find the width of the inner layer, which experts have one of their own for."""
    one_expert = _first(scope, ("moe_intermediate_size",))
    if _is_shared(parents):
        several = _times(one_expert, _first(scope, SHARED_EXPERTS))
        return _first(scope, SHARED_INNER) or several
    if _is_routed(parents):
        return one_expert
    return None if any(map(scope.get, UNEVEN_INNER)) else _first(scope, INNER)
