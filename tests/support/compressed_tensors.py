"""Configs of compressed-tensors, and tensors as it stores them, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from support.lowering import index_of

if TYPE_CHECKING:
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
Tensors = dict[str, tuple[str, "Shape"]]

W4: Final[Config] = {"num_bits": 4, "group_size": 32, "strategy": "group"}
FP8: Final[Config] = {"num_bits": 8, "type": "float", "strategy": "channel"}
NVFP4: Final[Config] = {
    "num_bits": 4,
    "type": "float",
    "strategy": "tensor_group",
    "group_size": 16,
}


def config(
    weights: Config | None = None, *targets: str, stored: str = "pack-quantized"
) -> Config:
    """Write a config of one group."""
    group = {"targets": list(targets or ["Linear"]), "weights": weights or W4}
    return {
        "quant_method": "compressed-tensors",
        "format": stored,
        "config_groups": {"group_0": group},
    }


def packed(*modules: str, bits: int = 4, width: int = 64, group: int = 32) -> Tensors:
    """Describe packed modules of 8 outputs."""
    found: Tensors = {}
    for module in modules:
        found[f"{module}.weight_packed"] = ("I32", (8, -(-width * bits // 32)))
        found[f"{module}.weight_scale"] = ("BF16", (8, width // group))
        found[f"{module}.weight_shape"] = ("I64", (2,))
    return found


def floats(*modules: str, scale: Shape = (8, 1)) -> Tensors:
    """Describe FP8 modules of 8 x 64."""
    found: Tensors = {}
    for module in modules:
        found[f"{module}.weight"] = ("F8_E4M3", (8, 64))
        found[f"{module}.weight_scale"] = ("BF16", scale)
    return found


def dense(*modules: str) -> Tensors:
    """Describe 16-bit modules of 8 x 64."""
    return {f"{module}.weight": ("BF16", (8, 64)) for module in modules}


STEMS: Final = ("a", "a.b", "l.0", "l.1", "x[0]", "re:y", "norm", "Linear", "embed")
stems = st.sampled_from(STEMS)
texts = st.sampled_from(
    (*STEMS, "Linear", "Embedding", "re:l.*", "re:a", "re:(", "lm_head", "")
)
_args = st.sampled_from(
    [
        W4,
        FP8,
        NVFP4,
        {"num_bits": 3, "group_size": 32, "symmetric": False},
        {"num_bits": 5, "strategy": "channel"},
        {"strategy": "channel", "symmetric": False},
        {"type": "float", "strategy": "block", "block_structure": [4, 32]},
        {"type": "float", "group_size": 32, "scale_dtype": "torch.uint8"},
        {"num_bits": 6, "type": "float", "group_size": 32},
        {"group_size": 0},
        {"strategy": "token"},
        {"actorder": "group", "num_bits": 4, "group_size": 32},
    ]
)
_groups = st.fixed_dictionaries(
    {"targets": st.lists(texts, max_size=3)},
    optional={
        "weights": _args | st.none(),
        "input_activations": st.sampled_from([None, {}, {"dynamic": True}]),
        "format": st.sampled_from(["pack-quantized", "float-quantized", None]),
    },
)
documents: st.SearchStrategy[Config] = st.fixed_dictionaries(
    {
        "quant_method": st.just("compressed-tensors"),
        "config_groups": st.dictionaries(
            st.sampled_from(["group_0", "group_1"]), _groups, max_size=2
        )
        | st.dictionaries(
            st.sampled_from(["W4A16", "fp8", "NVFP4", "mine"]),
            st.lists(texts, max_size=3),
            max_size=2,
        ),
    },
    optional={
        "format": st.sampled_from(
            ["pack-quantized", "mixed-precision", "dense", "none such", None]
        ),
        "ignore": st.lists(texts, max_size=3) | st.none(),
        "version": st.sampled_from(["0.17.1", "0.20.1", "new"]),
        "kv_cache_scheme": st.sampled_from([None, {"num_bits": 8, "type": "float"}]),
        "sparsity_config": st.sampled_from(
            [{}, {"format": "sparse-24-bitmask", "more": 1}, {"format": "rare"}]
        ),
    },
)
"""Documents, many of which are wrong in some way."""


@st.composite
def indexes(draw: st.DrawFn) -> TensorIndex:
    """Draw tensors of some modules, stored in any of the ways."""
    tensors: Tensors = {}
    for stem in draw(st.lists(stems, max_size=6, unique=True)):
        bits, scale = (
            draw(st.sampled_from([3, 4, 5])),
            draw(st.sampled_from([(), (1,)])),
        )
        pruned: Tensors = {
            f"{stem}.compressed": ("BF16", (8, 32)),
            f"{stem}.bitmask": ("U8", (8, 8)),
        }
        small: Tensors = {
            f"{stem}.weight_packed": ("U8", (8, 32)),
            f"{stem}.weight_scale": ("F8_E4M3", (8, 4)),
        }
        ways = [packed(stem, bits=bits), floats(stem, scale=scale), dense(stem)]
        tensors |= draw(st.sampled_from([*ways, pruned, small]))
    return index_of(tensors)


_junk: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, -1, -2, 4, 0.5, "", "int", "128x64", "0x1", [], [4, 4], {}]
)
_any_args = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        (
            *("num_bits", "type", "symmetric", "group_size", "strategy", "dynamic"),
            *("block_structure", "actorder", "scale_dtype", "observer_kwargs", "bits"),
        ),
        _junk | st.sampled_from(["group", "float", "local", "weight"]),
    ),
)
_any_group = st.fixed_dictionaries(
    {"targets": _junk},
    optional={"weights": _any_args | _junk, "format": _junk, "more": _junk},
)
untyped: st.SearchStrategy[Config] = st.fixed_dictionaries(
    {},
    optional={
        "config_groups": st.dictionaries(st.just("a"), _any_group | _junk) | _junk,
        "kv_cache_scheme": _any_args | _junk,
        "sparsity_config": st.dictionaries(st.sampled_from(["format", "x"]), _junk),
        **dict.fromkeys(
            (
                *("quant_method", "format", "quantization_status", "ignore"),
                *("global_compression_ratio", "version", "run_compressed", "$schema"),
                *("transform_config", "unheard_of"),
            ),
            _junk,
        ),
    },
)
"""Documents with values of any type, most of which no reader takes."""
