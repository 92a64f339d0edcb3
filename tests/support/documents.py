"""Documents of every dialect, for tests: one that is good, and any of a strategy.

`DOCUMENTS` draws what a dialect's reader accepts, right or wrong in what it says;
`altered` changes one value of a document to whatever JSON has.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from support import compressed_tensors

from qmanifest.dialects import DIALECTS
from qmanifest.testing.strategies import tensor_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Dialect

Config = dict[str, Any]
Documents = st.SearchStrategy[Config]
STEMS: Final = ("a", "a.b", "l.0", "l.1", "x[0]", "re:y", "ö→*", "norm", "{z,q}")
NAMES: Final = (*(f"{stem}.weight" for stem in STEMS), "a", "norm.bias", "x0.weight")
PATTERNS: Final = (
    *("*", "l.*", "l.{0..1}.weight", "?.weight", "x[0].weight", "*.bias"),
    *("re:a.*", "re:.*\\.weight", "re:(", "{a,norm}.weight", "nothing.*"),
)

names: Final = st.sampled_from(NAMES) | tensor_names()
lines: Final = st.sampled_from(PATTERNS) | names
line_lists: Final = st.lists(lines, max_size=5, unique=True)
"""Lines of a list of ours, which has none twice."""
skips: Final = st.none() | st.lists(
    st.sampled_from((*STEMS, "lm_head", "", "(", ".*", "*", "l", "re:l.*")), max_size=4
)
"""Lists of other libraries, in whatever syntax."""
_groups: Final = st.sampled_from([-1, 16, 32, 64, 128])
_bits: Final = st.sampled_from([2, 3, 4, 5, 8])
_flags: Final = st.booleans() | st.none()


def _texts(*texts: str) -> st.SearchStrategy[str | None]:
    return st.none() | st.sampled_from(texts)


def _of(method: str, **optional: st.SearchStrategy[Any]) -> Documents:
    """Draw documents with a `quant_method` and any of the other keys."""
    return st.fixed_dictionaries({"quant_method": st.just(method)}, optional=optional)


_entries: Final = st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([2, 3, 4, 6, 8]),
        "group_size": st.sampled_from([16, 32, 64, 128]),
        "mode": st.sampled_from(["affine", "mxfp4", "mxfp8", "nvfp4"]),
        "shape": st.lists(
            st.integers(0, 4).map(lambda n: 64 * n), min_size=2, max_size=3
        ),
    },
)
_scans: Final = st.fixed_dictionaries(
    {},
    optional={
        "file": st.sampled_from(["8b64", "x.json"]) | st.none(),
        "keep_backbone": st.integers(0, 9),
        "keep_depth": st.integers(0, 999),
    },
)
_overrides: Final = st.booleans() | st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([3, 4, 8]),
        "group_size": st.sampled_from([16, 32, 64]),
        "mode": st.sampled_from(["affine", "mxfp4", "nvfp4"]),
        "global_scale": st.booleans(),
    },
)
_modules: Final = st.sampled_from(STEMS) | tensor_names().filter(
    lambda name: name not in {"bits", "group_size", "mode", "$schema"}
)
_dynamic: Final = st.none() | st.dictionaries(
    st.sampled_from(["-:a.*", "+:l.0", "l\\.", "-:norm", "("]),
    st.fixed_dictionaries(
        {},
        optional={
            "bits": _bits,
            "group_size": _groups,
            "sym": st.booleans(),
            "desc_act": st.booleans(),
        },
    ),
    max_size=3,
)
_layers: Final = st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([2, 4, 8, 16]),
        "group_size": _groups,
        "sym": st.booleans(),
        "data_type": st.sampled_from(["int", "mx_fp", "nv_fp", "fp8"]),
    },
)
_torchao: Final = st.sampled_from(
    [
        {"_type": "Int8WeightOnlyConfig", "_version": 2, "_data": {}},
        {"_type": "Float8WeightOnlyConfig", "_version": 2, "_data": {}},
        {"_type": "NVFP4WeightOnlyConfig", "_version": 1, "_data": {}},
        {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 32}},
        {
            "_type": "IntxWeightOnlyConfig",
            "_data": {
                "weight_dtype": {"_type": "torch.dtype", "_data": "int4"},
                "granularity": {"_type": "PerGroup", "_data": {"group_size": 32}},
            },
        },
        {"_type": "NoneSuch"},
        {},
    ]
)
_tables: Final = st.dictionaries(
    st.sampled_from(["a", "l.0", "l.1.weight", "re:l.*", "re:(", "_default"]),
    _torchao | st.none(),
    max_size=3,
).map(lambda own: {"_type": "FqnToConfig", "_data": {"fqn_to_config": own}})
_hqq: Final = st.fixed_dictionaries(
    {
        "weight_quant_params": st.fixed_dictionaries(
            {"nbits": st.sampled_from([1, 1.58, 2, 3, 4, 8, 7])},
            optional={
                "group_size": st.sampled_from([32, 64, 128]) | st.none(),
                "axis": st.sampled_from([0, 1, None]),
                "channel_wise": st.booleans(),
            },
        )
    },
    optional={"scale_quant_params": st.none() | st.just({"nbits": 8})},
)
_quark: Final = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["int4", "uint4", "int8", "fp8_e4m3", "fp4", "mx6"]),
        "qscheme": st.sampled_from(["per_tensor", "per_channel", "per_group"]),
        "group_size": st.sampled_from([32, 128, None, 0]),
        "symmetric": st.booleans(),
        "scale_format": _texts("float", "e8m0", "e5m3"),
    },
)
_specs: Final = st.fixed_dictionaries(
    {}, optional={"weight": st.none() | _quark | st.lists(_quark, max_size=2)}
)
_exl: Final[dict[str, st.SearchStrategy[Any]]] = {
    "version": _texts("0.2.8"),
    "bits": st.sampled_from([2.25, 4.5, 4]),
    "head_bits": st.sampled_from([6, 8]),
    "calibration": st.none() | st.just({"rows": 100, "length": 2048}),
    "more": st.just([1]),
}

DOCUMENTS: Final[dict[str, Documents]] = {
    "tensor-map": st.fixed_dictionaries(
        {
            "bits": st.sampled_from([4, 5, 7, 8]),
            "group_size": st.sampled_from([32, 48, 64]),
            "kept_16bit": line_lists,
            "tensors": st.dictionaries(lines, _entries, max_size=5),
        },
        optional={
            "mode": st.sampled_from(["affine", "mxfp4"]),
            "scan": _scans | st.none(),
            "$schema": st.just("urn:x"),
        },
    ),
    "q4-lists": st.fixed_dictionaries(
        {
            "quant": st.just("q4"),
            "group": st.sampled_from([16, 64]),
            "scheme": st.sampled_from(["", "8-bit bf16", "4-bit"]),
            "protected_fp16": line_lists,
            "emb_q4": line_lists,
        },
        optional={"rr_q4": line_lists, "x_y_q4": line_lists},
    ),
    "mlx": st.builds(
        dict.__or__,
        st.dictionaries(_modules, _overrides, max_size=5),
        st.fixed_dictionaries(
            {
                "bits": st.sampled_from([4, 8]),
                "group_size": st.sampled_from([32, 64]),
            },
            optional={"mode": st.sampled_from(["affine", "nvfp4"])},
        ),
    ),
    "metal": _of(
        "metal",
        bits=st.sampled_from([2, 4, 8]),
        group_size=st.sampled_from([32, 64, 128]),
        modules_to_not_convert=skips,
    ),
    "gptq": _of(
        "gptq",
        bits=_bits,
        group_size=_groups,
        desc_act=_flags,
        sym=_flags,
        lm_head=_flags,
        checkpoint_format=_texts("gptq", "gptq_v2", "gptq_p", "marlin", "new"),
        pack_dtype=_texts("int32", "int16", "int8"),
        modules_in_block_to_quantize=st.sampled_from([None, ["l."], [["a"], ["x"]]]),
        dynamic=_dynamic,
        nearly_bits=st.just(1),
    ),
    "awq": _of(
        "awq",
        bits=st.sampled_from([4, 8]),
        group_size=_groups,
        zero_point=_flags,
        version=_texts("gemm", "GEMM", "gemv", "gemv_fast", "marlin", "new"),
        backend=_texts("llm-awq", "autoawq"),
        modules_to_not_convert=skips,
        dynamic=_dynamic,
    ),
    "compressed-tensors": compressed_tensors.documents,
    "fp8": _of(
        "fp8",
        activation_scheme=_texts("dynamic", "static"),
        weight_block_size=st.sampled_from([None, [128, 128], [32, 64]]),
        scale_fmt=_texts("float", "ue8m0"),
        modules_to_not_convert=skips,
        ignored_layers=skips,
        expert_dtype=_texts("fp8", "fp4"),
    ),
    "modelopt": st.fixed_dictionaries(
        {},
        optional={
            "quant_method": st.just("modelopt"),
            "quant_algo": _texts("FP8", "NVFP4", "W4A16_AWQ", "MIXED_PRECISION", "X"),
            "kv_cache_quant_algo": _texts("FP8"),
            "group_size": st.sampled_from([16, 32, 128]),
            "exclude_modules": skips,
            "ignore": skips,
            "quantized_layers": st.dictionaries(
                st.sampled_from(STEMS),
                st.sampled_from(
                    [{"quant_algo": "FP8"}, {"quant_algo": "NVFP4", "group_size": 16}]
                ),
                max_size=3,
            ),
            "producer": st.just({"name": "modelopt"}),
        },
    ),
    "mxfp4": _of("mxfp4", modules_to_not_convert=skips, dequantize=_flags),
    "bitsandbytes": _of(
        "bitsandbytes",
        load_in_8bit=_flags,
        load_in_4bit=_flags,
        _load_in_4bit=_flags,
        llm_int8_skip_modules=skips,
        llm_int8_threshold=st.sampled_from([6.0, 0.5]),
        bnb_4bit_quant_type=_texts("nf4", "fp4"),
        bnb_4bit_use_double_quant=_flags,
        bnb_4bit_quant_storage=_texts("uint8", "bfloat16"),
    ),
    "auto-round": st.fixed_dictionaries(
        {"quant_method": st.just("auto-round"), "bits": _bits},
        optional={
            "group_size": _groups | st.just([128, 128]),
            "sym": st.booleans(),
            "data_type": st.sampled_from(["int", "mx_fp", "nv_fp", "fp8", "new"]),
            "packing_format": _texts(
                "auto_round:auto_gptq", "auto_round:auto_awq", "auto_round:fp8", "new"
            ),
            "block_name_to_quantize": st.sampled_from([None, "l, a", ["l"], [["a"]]]),
            "extra_config": st.none()
            | st.dictionaries(
                st.sampled_from((*STEMS, ".*", "(")), _layers, max_size=3
            ),
        },
    ),
    "torchao": st.fixed_dictionaries(
        {
            "quant_method": st.just("torchao"),
            "quant_type": st.sampled_from(["int8_weight_only", "none_such"])
            | st.fixed_dictionaries({"default": _torchao | _tables})
            | _torchao,
        },
        optional={
            "quant_type_kwargs": st.none() | st.just({"group_size": 32}),
            "modules_to_not_convert": skips,
        },
    ),
    "hqq": st.fixed_dictionaries(
        {
            "quant_method": st.just("hqq"),
            "quant_config": _hqq
            | st.dictionaries(
                st.sampled_from(["a", "b", "l.0", "self_attn.q_proj"]),
                _hqq | st.none(),
                max_size=3,
            ),
        },
        optional={"skip_modules": skips},
    ),
    "quanto": _of(
        "quanto",
        weights=_texts("int8", "int4", "int2", "float8", "int5"),
        activations=_texts("int8"),
        modules_to_not_convert=skips,
    )
    | st.dictionaries(
        st.sampled_from(STEMS),
        st.fixed_dictionaries(
            {
                "weights": st.sampled_from(["qint8", "qint4", "qfloat8", "none", "x"]),
                "activations": st.just("none"),
            }
        ),
        min_size=1,
        max_size=4,
    ),
    "quark": _of(
        "quark",
        global_quant_config=st.none() | _specs,
        layer_quant_config=st.none()
        | st.dictionaries(st.sampled_from(["*a", "l.[01]", "["]), _specs, max_size=2),
        exclude=skips,
        export=st.none() | st.just({"pack_method": "order"}),
    ),
    "exl2": _of("exl2", **_exl),
    "exl3": _of(
        "exl3", **_exl, out_scales=_texts("always"), codebook=_texts("mcg", "mul1")
    ),
}

GOOD: Final[dict[str, Config]] = {
    "tensor-map": {
        "bits": 4,
        "group_size": 64,
        "kept_16bit": ["a.weight", "re:b.*"],
        "tensors": {"c.weight": {"bits": 8, "shape": [4, 64]}},
    },
    "q4-lists": {
        "quant": "q4",
        "group": 64,
        "scheme": "prose",
        "protected_fp16": ["norm"],
        "emb_q4": ["a.weight"],
    },
    "mlx": {"bits": 4, "group_size": 64, "a.b": {"bits": 8}, "c": False, "d": True},
    "metal": {"quant_method": "metal", "bits": 4, "group_size": 64},
    "gptq": {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 128,
        "desc_act": False,
        "sym": True,
        "dynamic": {"-:a.*": {}, "+:b": {"bits": 8}},
    },
    "awq": {
        "quant_method": "awq",
        "bits": 4,
        "group_size": 128,
        "zero_point": True,
        "version": "gemm",
        "modules_to_not_convert": ["visual"],
    },
    "compressed-tensors": compressed_tensors.config(),
    "fp8": {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
    },
    "modelopt": {
        "quant_algo": "NVFP4",
        "kv_cache_quant_algo": None,
        "group_size": 16,
        "exclude_modules": ["lm_head"],
    },
    "mxfp4": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
    "bitsandbytes": {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "_load_in_4bit": True,
        "llm_int8_threshold": 6.5,
        "bnb_4bit_quant_type": "nf4",
    },
    "auto-round": {
        "quant_method": "auto-round",
        "bits": 4,
        "group_size": 128,
        "sym": True,
        "packing_format": "auto_round:auto_gptq",
        "extra_config": {"lm_head": {"bits": 16}},
    },
    "torchao": {
        "quant_method": "torchao",
        "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}},
        "modules_to_not_convert": ["lm_head"],
    },
    "hqq": {
        "quant_method": "hqq",
        "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}},
        "skip_modules": ["lm_head"],
    },
    "quanto": {"a": {"weights": "qint8", "activations": "none"}},
    "quark": {
        "quant_method": "quark",
        "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
        "exclude": ["lm_head"],
    },
    "exl2": {"quant_method": "exl2", "bits": 4.25, "head_bits": 6},
    "exl3": {"quant_method": "exl3", "bits": 2.25, "codebook": "mcg"},
}
"""A document of each in which nothing is wrong."""

# Whole floats are left out: JSON Schema calls 4.0 an integer, and the readers do not.
junk: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [
        *(None, True, False, 0, -1, 4, 16, 64, 0.5, "", "q4", "x", "x" * 1025),
        *([], {}, [4], ["a", 7], {"a": 1}, [4, 4, 4]),
    ]
)


def keys_of(dialect: Dialect[Any]) -> list[str]:
    """Name the keys that a dialect's document knows."""
    fields = dialect.document.model_fields.items()
    return [field.alias or name for name, field in fields]


_KEYS: Final = {dialect.id: keys_of(dialect) for dialect in DIALECTS}


@st.composite
def altered(draw: st.DrawFn, dialect: str) -> Config:
    """Draw a document with a value or two that are of any type, at any depth."""
    document: Config = deepcopy(draw(DOCUMENTS[dialect]))
    for _ in range(draw(st.integers(1, 2))):
        places = [(document, key) for key in (*_KEYS[dialect], "unheard_of")]
        where, key = draw(st.sampled_from([*places, *_within(document)]))
        if draw(st.booleans()) or key not in where:
            where[key] = draw(junk)
        else:
            del where[key]
    return document


def _within(value: object) -> Iterator[tuple[Config, str]]:
    """Walk over every key of every object in a document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _within(inner)
    elif isinstance(value, list):
        for each in value:
            yield from _within(each)
