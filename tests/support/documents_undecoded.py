"""Documents of formats whose values are not decoded, for tests."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from support.documents_base import STEMS, Documents, names, of, skips, texts

_exl: Final[dict[str, st.SearchStrategy[Any]]] = {
    "version": texts("0.2.8"),
    "bits": st.sampled_from([2.25, 4.5, 4]),
    "head_bits": st.sampled_from([6, 8]),
    "calibration": st.none() | st.just({"rows": 100, "length": 2048}),
    "more": st.just([1]),
}

_vptq: Final = st.fixed_dictionaries(
    {},
    optional={
        "vector_lens": st.sampled_from([[-1, 8], [4, 8], [-1, -1]]),
        "num_centroids": st.sampled_from([[-1, 256], [16, 4096], [-1, 100]]),
        "num_res_centroids": st.sampled_from([[-1, -1], [-1, 16]]),
        "group_num": st.sampled_from([1, 2, 0]),
        "group_size": st.sampled_from([64, -1]),
        "outlier_size": st.sampled_from([0, 8]),
        "in_features": st.sampled_from([64, -1]),
        "out_features": st.sampled_from([8, -1]),
        "enable_norm": st.booleans(),
        "enable_perm": st.booleans(),
        "is_indice_packed": st.booleans(),
    },
)

UNDECODED: Final[dict[str, Documents]] = {
    "exl2": of("exl2", **_exl),
    "exl3": of(
        "exl3", **_exl, out_scales=texts("always"), codebook=texts("mcg", "mul1")
    ),
    "aqlm": of(
        "aqlm",
        in_group_size=st.sampled_from([8, 16]),
        out_group_size=st.sampled_from([1, 2]),
        num_codebooks=st.sampled_from([1, 2]),
        nbits_per_codebook=st.sampled_from([8, 16, 64]),
        linear_weights_not_to_quantize=st.none() | st.lists(names, max_size=3),
    ),
    "vptq": of(
        "vptq",
        config_for_layers=st.none()
        | st.dictionaries(st.sampled_from(STEMS), _vptq, max_size=3),
        shared_layer_config=st.none()
        | st.dictionaries(st.sampled_from(["b", "0"]), _vptq, max_size=2),
        modules_to_not_convert=skips,
    ),
    "spqr": of(
        "spqr",
        bits=st.just(3),
        shapes=st.none()
        | st.dictionaries(
            st.sampled_from(["a.dense_weights.shape", "l.0.in_perm.shape", "x"]),
            st.sampled_from([0, 8, 64]),
            max_size=3,
        ),
        modules_to_not_convert=skips,
    ),
    "higgs": of(
        "higgs",
        bits=st.sampled_from([2, 3, 4]),
        p=st.sampled_from([1, 2]),
        hadamard_size=st.sampled_from([256, 512, 1024]),
        group_size=st.sampled_from([64, 128, 256]),
        modules_to_not_convert=skips,
    ),
    "bitnet": of(
        "bitnet",
        linear_class=st.sampled_from(["bitlinear", "autobitlinear"]),
        quantization_mode=st.sampled_from(["online", "offline"]),
        modules_to_not_convert=skips,
    ),
}
