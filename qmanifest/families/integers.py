"""Formats of integers with a scale, and torchao, which has them and small floats."""

from __future__ import annotations

from typing import Final

from qmanifest.dtypes import FLOAT
from qmanifest.families.base import F8, Family, PartNames, parts_of

GPTQ: Final = Family(
    "gptq",
    "GPTQ or AWQ",
    parts_of(".qweight", scales=".scales", zeros=".qzeros", g_idx=".g_idx"),
    ("I32", "I16", "I8", "I64"),
    alone=("I32", "I16", "I8", "I64"),
    own=("zeros",),
)


MARLIN: Final = Family(
    "marlin",
    "Marlin",
    parts_of(".B", scales=".s", workspace=".workspace"),
    ("I32",),
    ("scales",),
)


PACKED: Final = Family(
    "packed",
    "compressed-tensors, packed",
    parts_of(
        ".weight_packed",
        scales=".weight_scale",
        zeros=".weight_zero_point",
        global_scale=".weight_global_scale",
        shape=".weight_shape",
        g_idx=".weight_g_idx",
        input_scale=".input_scale",
        input_global_scale=".input_global_scale",
        input_zero_point=".input_zero_point",
        output_scale=".output_scale",
        output_zero_point=".output_zero_point",
        marlin_scales=".scale_packed",
        marlin_meta=".meta",
    ),
    ("I32", "U8"),
    alone=("I32", "U8"),
    own=("shape", "global_scale"),
)


PRUNED: Final = Family(
    "pruned",
    "compressed-tensors, pruned",
    parts_of(
        ".compressed",
        bitmask=".bitmask",
        shape=".shape",
        row_offsets=".row_offsets",
        scales=".weight_scale",
        zeros=".weight_zero_point",
    ),
    (*FLOAT, *F8, "I8"),
    ("bitmask",),
)


HQQ_SETTINGS: Final = (
    *("nbits", "group_size", "shape", "axis", "packing", "unpack_view_dtype"),
    *("view_as_float", "quant_scale", "quant_zero", "compute_dtype", "offload_meta"),
    *("encoded_state_dict", "stores_quant_config", "channel_wise", "optimize"),
    "round_zero",
)
"""What HQQ stores beside every weight as a tensor of its own."""


HQQ: Final = Family(
    "hqq",
    "HQQ",
    parts_of(
        ".W_q",
        scales=".scale",
        zeros=".zero",
        **{f"hqq_{key}": f".{key}" for key in HQQ_SETTINGS},
    ),
    ("U8", "I32", *FLOAT),
    alone=("U8", "I32", *FLOAT),
    own=("hqq_nbits", "hqq_unpack_view_dtype"),
)


QUANTO_PACKED: Final = Family(
    "quanto-packed",
    "quanto, packed",
    parts_of(
        ".weight._data._data",
        scales=".weight._scale",
        zeros=".weight._shift",
        input_scale=".input_scale",
        output_scale=".output_scale",
    ),
    ("U8",),
    alone=("U8",),
    own=("zeros",),
)


QUANTO: Final = Family(
    "quanto",
    "quanto",
    parts_of(
        ".weight._data",
        scales=".weight._scale",
        input_scale=".input_scale",
        output_scale=".output_scale",
    ),
    ("I8", *F8),
    alone=("I8", *F8),
)


GEMMA: Final = Family(
    "gemma",
    "Gemma, quantized in training",
    parts_of(
        ".weight",
        scales=".weight_scale",
        input_activation_scale=".input_activation_scale",
        output_activation_scale=".output_activation_scale",
    ),
    ("U8", "I8"),
    ("input_activation_scale", "output_activation_scale"),
    own=("input_activation_scale", "output_activation_scale"),
)


GEMMA_TABLE: Final = Family(
    "gemma-table",
    "Gemma, quantized in training, embeddings",
    parts_of(".embedding_quantized", scales=".embedding_scale"),
    ("U8", "I8"),
    alone=("U8", "I8"),
    own=("scales",),
)


_TORCHAO_FIELDS: Final = {
    "scales": "scale",
    "zeros": "zero_point",
    "global_scale": "per_tensor_scale",
    "scale_and_zero": "scale_and_zero",
    "act_pre_scale": "act_pre_scale",
    "act_quant_scale": "act_quant_scale",
    "act_quant_zero_point": "act_quant_zero_point",
    "act_per_tensor_scale": "act_per_tensor_scale",
}
"""Fields of torchao's tensors by role; that of the codes is `qdata`."""


def _torchao(parameter: str) -> Family:
    """Name the fields of a parameter: `X.weight` is stored as `X._weight_qdata`."""
    fields = {"codes": "qdata", **_TORCHAO_FIELDS}.items()
    parts = tuple((role, f"._{parameter}_{field}") for role, field in fields)
    dtypes = ("I8", "U8", "I32", *F8)
    names = PartNames(f".{parameter}", parts)
    return Family(
        "torchao",
        "torchao",
        names,
        dtypes,
        alone=dtypes,
        own=("scales", "zeros"),
        described=True,
    )


TORCHAO: Final = tuple(map(_torchao, ("weight", "gate_up_proj", "down_proj")))
"""Of layers, and of experts in one tensor."""
