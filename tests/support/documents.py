"""Documents of every dialect, for tests: one that is good, and any of a strategy.

`DOCUMENTS` draws what a dialect's reader accepts, right or wrong in what it says;
`altered` changes one value of a document to whatever JSON has.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from support import compressed_tensors
from support.documents_libraries import LIBRARIES
from support.documents_ours import OURS
from support.documents_undecoded import UNDECODED
from support.documents_words import WORDS

from qmanifest.dialects import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.documents_base import Config, Documents

    from qmanifest.dialects.base import Dialect

DOCUMENTS: Final[dict[str, Documents]] = {
    **OURS,
    **WORDS,
    "compressed-tensors": compressed_tensors.documents,
    **LIBRARIES,
    **UNDECODED,
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
    "gemma": {
        "quant_method": "gemma",
        "num_bits": 4,
        "module_quant_configs": {"embed_tokens$": {"num_bits": 8}},
    },
    "aqlm": {"quant_method": "aqlm", "nbits_per_codebook": 16},
    "spqr": {"quant_method": "spqr", "shapes": {"a.in_perm.shape": 64}},
    "bitnet": {"quant_method": "bitnet", "linear_class": "autobitlinear"},
    "higgs": {"quant_method": "higgs", "bits": 4, "group_size": 256},
    "vptq": {
        "quant_method": "vptq",
        "config_for_layers": {
            "a": {"vector_lens": [-1, 8], "num_centroids": [-1, 256]}
        },
    },
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
