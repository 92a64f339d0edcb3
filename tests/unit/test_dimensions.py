"""Widths from a model's config: known for the right modules, and for no others."""

from __future__ import annotations

from typing import Any

import pytest

from qmanifest.dimensions import hidden_size, in_features

LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 8,
    "head_dim": 16,
}
DEEPSEEK = {
    "hidden_size": 64,
    "intermediate_size": 256,
    "moe_intermediate_size": 48,
    "n_shared_experts": 2,
    "num_attention_heads": 4,
    "head_dim": 24,
    "v_head_dim": 32,
}
LLAMA4 = {"hidden_size": 64, "intermediate_size": 128, "intermediate_size_mlp": 256}
LAYER = "model.layers.3"


@pytest.mark.parametrize(
    ("module", "width", "keys"),
    [
        ("model.embed_tokens", 64, "hidden_size"),
        ("lm_head", 64, "hidden_size"),
        *((f"{LAYER}.self_attn.{p}_proj", 64, "hidden_size") for p in "qkv"),
        (f"{LAYER}.self_attn.o_proj", 128, "num_attention_heads x head_dim"),
        (f"{LAYER}.attn.out_proj", 128, "num_attention_heads x head_dim"),
        (f"{LAYER}.attn.c_attn", 64, "hidden_size"),
        (f"{LAYER}.attention.query_key_value", 64, "hidden_size"),
        (f"{LAYER}.mlp.gate_proj", 64, "hidden_size"),
        (f"{LAYER}.mlp.dense_h_to_4h", 64, "hidden_size"),
        (f"{LAYER}.mlp.down_proj", 176, "intermediate_size"),
        (f"{LAYER}.mlp.fc2", 176, "intermediate_size"),
        (f"{LAYER}.mlp.experts.7.up_proj", 64, "hidden_size"),
    ],
)
def test_modules_of_a_decoder(module: str, width: int, keys: str) -> None:
    assert in_features(f"{module}.weight", LLAMA) == (width, keys)
    assert in_features(f"language_model.{module}.weight", LLAMA) == (width, keys)


@pytest.mark.parametrize(
    ("module", "width"),
    [
        ("attention.self.query", 64),
        ("attention.self.key", 64),
        ("attention.output.dense", 64),
        ("intermediate.dense", 64),
        ("output.dense", 176),
    ],
)
def test_modules_of_bert(module: str, width: int) -> None:
    for prefix in ("", "roberta."):
        found = in_features(f"{prefix}encoder.layer.0.{module}.weight", LLAMA)
        assert found is not None
        assert found[0] == width


@pytest.mark.parametrize(
    "name",
    [
        f"{LAYER}.mlp.gate.weight",
        f"{LAYER}.self_attn.q_b_proj.weight",
        f"{LAYER}.self_attn.dense.weight",
        f"{LAYER}.linear_attn.out_proj.weight",
        f"{LAYER}.mamba.out_proj.weight",
        f"{LAYER}.cross_attn.k_proj.weight",
        f"{LAYER}.crossattention.self.key.weight",
        f"{LAYER}.adapter.down_proj.weight",
        f"{LAYER}.feed_forward.value.weight",
        f"{LAYER}.norm.weight",
        "vision_tower.layers.0.self_attn.q_proj.weight",
        "visual.blocks.0.mlp.fc1.weight",
        "audio_tower.layers.0.fc1.weight",
        "depth_decoder.model.layers.0.mlp.down_proj.weight",
        "multi_modal_projector.0.fc1.weight",
        "talker.code_predictor.model.layers.0.mlp.up_proj.weight",
        "connector.fc1.weight",
        "up_proj.weight",
        "pooler.dense.weight",
        "",
    ],
)
def test_other_modules_have_no_witness(name: str) -> None:
    assert in_features(name, LLAMA) is None


@pytest.mark.parametrize(
    ("module", "config", "width"),
    [
        ("mlp.experts.0.down_proj", DEEPSEEK, 48),
        ("mlp.switch_mlp.down_proj", DEEPSEEK, 48),
        ("mlp.shared_experts.down_proj", DEEPSEEK, 96),
        ("mlp.shared_experts.up_proj", DEEPSEEK, 64),
        ("mlp.down_proj", DEEPSEEK, 256),
        ("self_attn.o_proj", DEEPSEEK, 128),
        (
            "mlp.shared_expert.down_proj",
            {**DEEPSEEK, "shared_expert_intermediate_size": 80},
            80,
        ),
        ("mlp.experts.0.up_proj", {**DEEPSEEK, "moe_latent_size": 32}, 32),
        ("mlp.shared_experts.up_proj", {**DEEPSEEK, "moe_latent_size": 32}, 64),
        ("feed_forward.down_proj", LLAMA4, 256),
    ],
)
def test_experts_have_widths_of_their_own(
    module: str, config: dict[str, Any], width: int
) -> None:
    found = in_features(f"{LAYER}.{module}.weight", config)
    assert found is not None
    assert found[0] == width


@pytest.mark.parametrize(
    ("module", "config"),
    [
        ("mlp.experts.0.down_proj", LLAMA4),
        ("mlp.shared_expert.down_proj", LLAMA4),
        ("self_attn.o_proj", {"hidden_size": 64}),
        ("self_attn.o_proj", {"hidden_size": 64, "head_dim": 16}),
        ("self_attn.o_proj", {**LLAMA, "global_head_dim": 32}),
        ("self_attn.o_proj", {**LLAMA, "swa_num_attention_heads": 16}),
        ("mlp.down_proj", {**LLAMA, "use_double_wide_mlp": True}),
        ("mlp.down_proj", {**LLAMA, "intermediate_size": [64, 128]}),
        ("mlp.down_proj", {"hidden_size": 64}),
        ("self_attn.q_proj", {**LLAMA, "attention_hidden_size": 128}),
        ("attention.self.query", {"hidden_size": 64, "depths": [2, 6]}),
    ],
)
def test_layers_that_differ_have_no_witness(
    module: str, config: dict[str, Any]
) -> None:
    assert in_features(f"{LAYER}.{module}.weight", config) is None


def test_head_width_follows_from_the_hidden_size() -> None:
    name = f"{LAYER}.self_attn.o_proj.weight"
    config = {"hidden_size": 64, "num_attention_heads": 4}
    assert in_features(name, config) == (64, "hidden_size")


def test_embeddings_may_be_narrower() -> None:
    albert = {"hidden_size": 64, "embedding_size": 32}
    name = "albert.embeddings.word_embeddings.weight"
    assert in_features(name, albert) == (32, "embedding_size")
    assert in_features("model.wte.weight", {"n_embd": 48}) == (48, "n_embd")


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_the_text_model_is_one_level_down(key: str) -> None:
    config = {key: LLAMA, "hidden_size": 32}
    found = in_features(f"{LAYER}.mlp.up_proj.weight", config)
    assert found == (64, "hidden_size")
    assert hidden_size(config) == 64
    assert hidden_size({key: "none", "hidden_size": 32}) == 32
    assert hidden_size({key: {}, "d_model": 32}) == 32


@pytest.mark.parametrize("value", [None, 0, -64, 64.0, "64", True, [64], {}])
def test_what_is_no_width_says_nothing(value: object) -> None:
    config = {"hidden_size": value}
    assert in_features("model.embed_tokens.weight", config) is None
    assert hidden_size(config) is None
