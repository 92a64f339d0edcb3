"""Formats of small floats with a scale."""

from __future__ import annotations

from typing import Final

from qmanifest.families.base import F8, Family, parts_of, stack_of

BLOCK_FP8: Final = Family(
    "block-fp8",
    "fine-grained FP8",
    parts_of(
        ".weight",
        scales=".weight_scale_inv",
        input_scale=".input_scale",
        activation_scale=".activation_scale",
    ),
    (*F8, "I8"),
    ("scales",),
    own=("scales",),
)


OWN_FP8: Final = Family(
    "own-fp8",
    "fine-grained FP8, by DeepSeek's own names",
    parts_of(".weight", scales=".scale"),
    (*F8, "I8"),
    ("scales",),
)


MISTRAL_FP8: Final = Family(
    "mistral-fp8",
    "FP8, by Mistral's own names",
    parts_of(".weight", scales=".qscale_weight", input_scale=".qscale_act"),
    F8,
    ("scales",),
    own=("scales",),
)


SCALED: Final = Family(
    "scaled",
    "FP8, NVFP4 or INT8",
    parts_of(
        ".weight",
        scales=".weight_scale",
        zeros=".weight_zero_point",
        global_scale=".weight_scale_2",
        input_scale=".input_scale",
        pre_quant_scale=".pre_quant_scale",
        low_rank_a=".svdquant_lora_a",
        low_rank_b=".svdquant_lora_b",
        input_zero_point=".input_zero_point",
        output_scale=".output_scale",
        output_zero_point=".output_zero_point",
    ),
    (*F8, "U8", "I8", "I32", "I16"),
    ("scales",),
    alone=F8,
    own=("scales", "global_scale"),
)


GPT_OSS: Final = Family(
    "gpt-oss",
    "gpt-oss MXFP4",
    stack_of(codes="_blocks", scales="_scales"),
    ("U8",),
    alone=("U8",),
    turned=True,
)


EXPERT_SCALED: Final = Family(
    "expert-scaled",
    "FP8 or NVFP4, stacks of experts",
    stack_of(
        scales="_weight_scale",
        global_scale="_weight_scale_2",
        input_scale="_input_scale",
    ),
    (*F8, "U8"),
    ("scales",),
    turned=True,
)


EXPERT_FP8: Final = Family(
    "expert-fp8",
    "fine-grained FP8, experts",
    stack_of(scales="_scale_inv", activation_scale="_activation_scale"),
    (*F8, "I8"),
    ("scales",),
)
