"""Documents of libraries that quantize, for tests."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from support.documents_base import STEMS, Documents, flags, of, skips, texts

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
        "scale_format": texts("float", "e8m0", "e5m3"),
    },
)
_specs: Final = st.fixed_dictionaries(
    {}, optional={"weight": st.none() | _quark | st.lists(_quark, max_size=2)}
)
LIBRARIES: Final[dict[str, Documents]] = {
    "bitsandbytes": of(
        "bitsandbytes",
        load_in_8bit=flags,
        load_in_4bit=flags,
        _load_in_4bit=flags,
        llm_int8_skip_modules=skips,
        llm_int8_threshold=st.sampled_from([6.0, 0.5]),
        bnb_4bit_quant_type=texts("nf4", "fp4"),
        bnb_4bit_use_double_quant=flags,
        bnb_4bit_quant_storage=texts("uint8", "bfloat16"),
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
    "quanto": of(
        "quanto",
        weights=texts("int8", "int4", "int2", "float8", "int5"),
        activations=texts("int8"),
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
    "quark": of(
        "quark",
        global_quant_config=st.none() | _specs,
        layer_quant_config=st.none()
        | st.dictionaries(st.sampled_from(["*a", "l.[01]", "["]), _specs, max_size=2),
        exclude=skips,
        export=st.none() | st.just({"pack_method": "order"}),
    ),
    "gemma": of(
        "gemma",
        num_bits=st.sampled_from([2, 4, 8, 3, None]),
        quantize_embeddings=flags,
        module_quant_configs=st.none()
        | st.dictionaries(
            st.sampled_from(["l\\.", "a$", "(", "embed"]),
            st.sampled_from([{}, {"num_bits": 2}, {"num_bits": None}]),
            max_size=2,
        ),
        modules_to_not_convert=skips,
    ),
}
