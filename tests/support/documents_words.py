"""Documents of GPTQ, AWQ, FP8 and their kin, for tests."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from support.documents_base import (
    STEMS,
    Documents,
    bits,
    flags,
    groups,
    of,
    skips,
    texts,
)

_dynamic: Final = st.none() | st.dictionaries(
    st.sampled_from(["-:a.*", "+:l.0", "l\\.", "-:norm", "("]),
    st.fixed_dictionaries(
        {},
        optional={
            "bits": bits,
            "group_size": groups,
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
        "group_size": groups,
        "sym": st.booleans(),
        "data_type": st.sampled_from(["int", "mx_fp", "nv_fp", "fp8"]),
    },
)
WORDS: Final[dict[str, Documents]] = {
    "metal": of(
        "metal",
        bits=st.sampled_from([2, 4, 8]),
        group_size=st.sampled_from([32, 64, 128]),
        modules_to_not_convert=skips,
    ),
    "gptq": of(
        "gptq",
        bits=bits,
        group_size=groups,
        desc_act=flags,
        sym=flags,
        lm_head=flags,
        checkpoint_format=texts("gptq", "gptq_v2", "gptq_p", "marlin", "new"),
        pack_dtype=texts("int32", "int16", "int8"),
        modules_in_block_to_quantize=st.sampled_from([None, ["l."], [["a"], ["x"]]]),
        dynamic=_dynamic,
        nearly_bits=st.just(1),
    ),
    "awq": of(
        "awq",
        bits=st.sampled_from([4, 8]),
        group_size=groups,
        zero_point=flags,
        version=texts("gemm", "GEMM", "gemv", "gemv_fast", "marlin", "new"),
        backend=texts("llm-awq", "autoawq"),
        modules_to_not_convert=skips,
        dynamic=_dynamic,
    ),
    "fp8": of(
        "fp8",
        activation_scheme=texts("dynamic", "static"),
        weight_block_size=st.sampled_from([None, [128, 128], [32, 64]]),
        scale_fmt=texts("float", "ue8m0"),
        modules_to_not_convert=skips,
        ignored_layers=skips,
        expert_dtype=texts("fp8", "fp4"),
    ),
    "modelopt": st.fixed_dictionaries(
        {},
        optional={
            "quant_method": st.just("modelopt"),
            "quant_algo": texts("FP8", "NVFP4", "W4A16_AWQ", "MIXED_PRECISION", "X"),
            "kv_cache_quant_algo": texts("FP8"),
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
    "mxfp4": of("mxfp4", modules_to_not_convert=skips, dequantize=flags),
    "auto-round": st.fixed_dictionaries(
        {"quant_method": st.just("auto-round"), "bits": bits},
        optional={
            "group_size": groups | st.just([128, 128]),
            "sym": st.booleans(),
            "data_type": st.sampled_from(["int", "mx_fp", "nv_fp", "fp8", "new"]),
            "packing_format": texts(
                "auto_round:auto_gptq", "auto_round:auto_awq", "auto_round:fp8", "new"
            ),
            "block_name_to_quantize": st.sampled_from([None, "l, a", ["l"], [["a"]]]),
            "extra_config": st.none()
            | st.dictionaries(
                st.sampled_from((*STEMS, ".*", "(")), _layers, max_size=3
            ),
        },
    ),
}
