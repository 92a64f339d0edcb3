"""Families: how formats call the stored tensors of a quantized weight.

A family is evidence, not a promise: it says which stored tensors are codes and which
only serve them, whatever the config calls itself. Dialects pick those that they read.
To add one, add a row to `FAMILIES`; where two rows fit a tensor, the first counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT

if TYPE_CHECKING:
    from collections.abc import Container

WORDS: Final = ("U32", "I32", "U8", "I8")
"""Dtypes that codes are stored in."""
F8: Final = ("F8_E4M3", "F8_E5M2")
"""Dtypes that are codes and numbers at once."""
DENSE: Final = (*FLOAT, "F64")
"""Dtypes that a weight has before it is quantized."""


@dataclass(frozen=True, slots=True)
class PartNames:
    """How the stored tensors of a weight are called: a stem and a suffix per role."""

    stem_suffix: str
    """Taken off the weight's name to make the stem, where the name ends with it."""
    suffixes: tuple[tuple[str, str], ...]
    """Role and suffix of every part whose name is not the weight's own."""

    def name(self, weight: str, role: str) -> str:
        """Name the part of `weight` that plays `role`."""
        for part, suffix in self.suffixes:
            if part == role:
                return weight.removesuffix(self.stem_suffix) + suffix
        return weight

    def weight(self, codes: str) -> str:
        """Name the weight whose codes are called `codes`."""
        for part, suffix in self.suffixes:
            if part == "codes":
                return codes.removesuffix(suffix) + self.stem_suffix
        return codes

    def of(self, weight: str) -> tuple[str, ...]:
        """Name every part of `weight` but its codes."""
        stem = weight.removesuffix(self.stem_suffix)
        return tuple(stem + suffix for role, suffix in self.suffixes if role != "codes")


@dataclass(frozen=True, slots=True)
class Family:
    """One way to call the parts of a weight, and what shows that it is in use."""

    id: str
    title: str
    names: PartNames
    dtypes: tuple[str, ...]
    """Dtypes that the codes may have."""
    marks: tuple[str, ...] = ()
    """Roles; a part of one of them has to stand beside the codes."""
    alone: tuple[str, ...] = ()
    """Dtypes of codes that need no mark."""
    own: tuple[str, ...] = ()
    """Roles whose suffix no other family has: one of them tells that codes are lost."""
    described: bool = False
    """Whether readers know its weights by what the headers' metadata says of them."""
    turned: bool = False
    """Whether the 16-bit model has the inputs of its weights before the outputs."""

    @property
    def codes(self) -> str:
        """Suffix of the codes; empty where they are called as the weight is."""
        return next((s for role, s in self.names.suffixes if role == "codes"), "")

    def weight(self, codes: str, dtype: str, names: Container[str]) -> str | None:
        """Name the weight that `codes` holds, if they are codes of this family.

        Args:
            codes: a stored tensor's name.
            dtype: its dtype.
            names: the names of all stored tensors.

        """
        if dtype not in self.dtypes or not codes.endswith(self.codes):
            return None
        weight = self.names.weight(codes)
        if weight == codes and not weight.endswith(self.names.stem_suffix):
            return None
        if dtype in self.alone:
            return weight
        beside = (self.names.name(weight, role) for role in self.marks)
        return weight if any(name in names for name in beside) else None


def _parts(codes: str, /, **suffixes: str) -> PartNames:
    """Name the parts of a weight `X.weight` by suffixes of `X`."""
    own = () if codes == ".weight" else (("codes", codes),)
    return PartNames(".weight", (*own, *suffixes.items()))


def _stack(**suffixes: str) -> PartNames:
    """Name the parts of a stack of experts `X` by what follows its name."""
    return PartNames("", tuple(suffixes.items()))


MLX_NAMES: Final = _parts(
    ".weight",
    scales=".scales",
    biases=".biases",
    zeros=".zeros",
    global_scale=".global_scale",
)
"""`X.weight` holds the codes, `X.scales` and `X.biases` stand beside it."""
METAL: Final = Family(
    "metal",
    "MLX's layout as transformers spells it",
    _parts(".weight", scales=".scales", biases=".qbiases"),
    ("U32",),
    ("biases",),
)
GPTQ: Final = Family(
    "gptq",
    "GPTQ or AWQ",
    _parts(".qweight", scales=".scales", zeros=".qzeros", g_idx=".g_idx"),
    ("I32", "I16", "I8", "I64"),
    alone=("I32", "I16", "I8", "I64"),
    own=("zeros",),
)
MARLIN: Final = Family(
    "marlin",
    "Marlin",
    _parts(".B", scales=".s", workspace=".workspace"),
    ("I32",),
    ("scales",),
)
PACKED: Final = Family(
    "packed",
    "compressed-tensors, packed",
    _parts(
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
BNB4: Final = Family(
    "bnb4",
    "bitsandbytes 4-bit",
    PartNames(
        "",
        (
            ("scales", ".absmax"),
            ("quant_map", ".quant_map"),
            ("nested_absmax", ".nested_absmax"),
            ("nested_quant_map", ".nested_quant_map"),
            ("quant_state", ".quant_state.bitsandbytes__nf4"),
            ("quant_state_fp4", ".quant_state.bitsandbytes__fp4"),
        ),
    ),
    ("U8", "I8"),
    ("scales", "quant_map", "quant_state", "quant_state_fp4"),
    own=("scales", "quant_map"),
)
BNB8: Final = Family(
    "bnb8",
    "bitsandbytes int8",
    _parts(".weight", scales=".SCB", format=".weight_format"),
    ("I8",),
    ("scales",),
    own=("scales",),
)
BLOCK_FP8: Final = Family(
    "block-fp8",
    "fine-grained FP8",
    _parts(
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
    _parts(".weight", scales=".scale"),
    (*F8, "I8"),
    ("scales",),
)
MISTRAL_FP8: Final = Family(
    "mistral-fp8",
    "FP8, by Mistral's own names",
    _parts(".weight", scales=".qscale_weight", input_scale=".qscale_act"),
    F8,
    ("scales",),
    own=("scales",),
)
SCALED: Final = Family(
    "scaled",
    "FP8, NVFP4 or INT8",
    _parts(
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
GEMMA: Final = Family(
    "gemma",
    "Gemma, quantized in training",
    _parts(
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
    _parts(".embedding_quantized", scales=".embedding_scale"),
    ("U8", "I8"),
    alone=("U8", "I8"),
    own=("scales",),
)
AQLM: Final = Family(
    "aqlm",
    "AQLM",
    _parts(".codes", scales=".scales", codebooks=".codebooks"),
    ("I8", "I16", "I32", "I64"),
    ("codebooks",),
    own=("codebooks",),
)
VPTQ: Final = Family(
    "vptq",
    "VPTQ",
    _parts(
        ".indices",
        centroids=".centroids.weight",
        res_indices=".res_indices",
        res_centroids=".res_centroids.weight",
        outlier_indices=".outlier_indices",
        outlier_centroids=".outlier_centroids.weight",
        weight_scale=".weight_scale",
        weight_bias=".weight_bias",
        perm=".perm",
    ),
    ("I32", "I16"),
    ("centroids",),
    own=("centroids",),
)
SPQR: Final = Family(
    "spqr",
    "SpQR",
    _parts(
        ".dense_weights",
        row_offsets=".row_offsets",
        col_vals=".col_vals",
        in_perm=".in_perm",
    ),
    ("I64",),
    alone=("I64",),
    own=("col_vals", "in_perm"),
)
HIGGS: Final = Family(
    "higgs",
    "HIGGS",
    _parts(".weight", scales=".scales", tables=".tables", tables2=".tables2"),
    ("I16",),
    ("tables", "tables2"),
    own=("tables", "tables2"),
)
PRUNED: Final = Family(
    "pruned",
    "compressed-tensors, pruned",
    _parts(
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
GPT_OSS: Final = Family(
    "gpt-oss",
    "gpt-oss MXFP4",
    _stack(codes="_blocks", scales="_scales"),
    ("U8",),
    alone=("U8",),
    turned=True,
)
EXPERT_SCALED: Final = Family(
    "expert-scaled",
    "FP8 or NVFP4, stacks of experts",
    _stack(
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
    _stack(scales="_scale_inv", activation_scale="_activation_scale"),
    (*F8, "I8"),
    ("scales",),
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
    _parts(
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
    _parts(
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
    _parts(
        ".weight._data",
        scales=".weight._scale",
        input_scale=".input_scale",
        output_scale=".output_scale",
    ),
    ("I8", *F8),
    alone=("I8", *F8),
)
EXL2: Final = Family(
    "exl2",
    "EXL2",
    _parts(
        ".q_weight",
        scales=".q_scale",
        scale_max=".q_scale_max",
        groups=".q_groups",
        order=".q_invperm",
    ),
    ("I32",),
    alone=("I32",),
    own=("scale_max", "groups", "order"),
)
EXL3: Final = Family(
    "exl3",
    "EXL3",
    _parts(
        ".trellis",
        input_signs=".suh",
        output_signs=".svh",
        input_bits=".su",
        output_bits=".sv",
        multiplier=".mcg",
        other_multiplier=".mul1",
    ),
    ("I16",),
    alone=("I16",),
    own=("input_signs", "output_signs"),
)
MLX: Final = Family("mlx", "MLX", MLX_NAMES, WORDS, ("scales",), alone=("U32",))

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


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Exchange the last two axes, if there are two."""
    return (*shape[:-2], *reversed(shape[-2:]))
