"""Widths of many weights at once are those that each has by itself."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from qmanifest.dimensions import in_features
from qmanifest.manifest import Weight
from qmanifest.rules.widths import widths_of
from qmanifest.schemes import Affine

MODEL = {
    "hidden_size": 128,
    "moe_intermediate_size": 64,
    "intermediate_size": 512,
    "num_attention_heads": 2,
    "head_dim": 32,
}
SEGMENTS = (
    *("model", "layers", "0", "17", "1\n", "\n", "", "fc1", "fc2", "٣", "h2"),
    *("mlp", "experts", "shared_expert", "self_attn", "vision", "attention", "output"),
    *("up_proj", "down_proj", "o_proj", "q_proj", "dense", "layer", "lm_head", "wte"),
)
NAMES = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=6).map(".".join)


def weights(names: list[str]) -> list[Weight]:
    scheme = Affine(4, 64, ("F16",), "u32-lsb")
    return [Weight(f"{name}.weight", scheme, "") for name in names]


@given(names=st.lists(NAMES, max_size=6))
def test_each_weight_has_its_own_width(names: list[str]) -> None:
    made = weights(names)
    each = [in_features(weight.name, MODEL) for weight in made]
    expected = [None if found is None else found[0] for found in each]
    assert list(widths_of(made, MODEL)) == expected


def test_without_a_model_no_width_is_known() -> None:
    made = weights(["model.layers.0.mlp.up_proj"] * 3)
    assert list(islice(widths_of(made, {}), 3)) == [None] * 3
    assert list(widths_of(made, MODEL)) == [128] * 3
