"""`modelopt`: both files, every algorithm, layers of their own, what is said twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from support.configs import CONFIGS, defects_of_real_config
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named, recognize
from qmanifest.dialects.modelopt.schemes import ALGORITHMS, BITS
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine, Integer, Opaque, Scaled
from qmanifest.sizes import sizes_of, stored_sizes
from qmanifest.spreads import Spread
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.schemes import Scheme

Tensors: TypeAlias = dict[str, tuple[str, Shape]]
Config: TypeAlias = dict[str, Any]
ID: Final = "modelopt"
N, K = 256, 128
REAL = [path for path in CONFIGS if path.name.startswith(ID)]
TWICE: Final = "modelopt_03."
"""A real config whose two vocabularies contradict each other."""


def parts(stem: str = "a", **tensors: tuple[str, Shape]) -> Tensors:
    """Describe the parts of a module by their last names."""
    return {f"{stem}.{name}": part for name, part in tensors.items()}


def nvfp4(*stems: str) -> Tensors:
    tensors: Tensors = {}
    for stem in stems:
        tensors |= parts(
            stem,
            weight=("U8", (N, K // 2)),
            weight_scale=("F8_E4M3", (N, K // 16)),
            weight_scale_2=("F32", ()),
            input_scale=("F32", ()),
        )
    return tensors


def fp8(*stems: str) -> Tensors:
    tensors: Tensors = {}
    for stem in stems:
        one = ("F32", ())
        tensors |= parts(
            stem, weight=("F8_E4M3", (N, K)), weight_scale=one, input_scale=one
        )
    return tensors


STORED: Final[dict[str, Tensors]] = {
    "FP8": fp8("a"),
    "FP8_PER_CHANNEL_PER_TOKEN": parts(
        weight=("F8_E4M3", (N, K)), weight_scale=("F32", (N,))
    ),
    "FP8_PB_WO": parts(weight=("F8_E4M3", (N, K)), weight_scale=("F32", (2, 1, 1, 1))),
    "FP8_PB_REAL": parts(weight=("F8_E4M3", (N, K)), weight_scale=("F32", (2, 1))),
    "NVFP4": nvfp4("a"),
    "W4A16_NVFP4": nvfp4("a"),
    "NVFP4_AWQ": nvfp4("a") | parts(pre_quant_scale=("BF16", (K,))),
    "NVFP4_SVD": nvfp4("a") | parts(svdquant_lora_a=("BF16", (4, K))),
    "W4A8_NVFP4_FP8": nvfp4("a"),
    "W4A8_MXFP4_FP8": parts(
        weight=("U8", (N, K // 2)), weight_scale=("U8", (N, K // 32))
    ),
    "MXFP4": parts(weight=("U8", (N, K // 2)), weight_scale=("U8", (N, K // 32))),
    "MXFP8": parts(weight=("F8_E4M3", (N, K)), weight_scale=("U8", (N, K // 32))),
    "W4A16_AWQ": parts(weight=("U8", (N // 2, K)), weight_scale=("F32", (N, 1))),
    "W4A8_AWQ": parts(
        weight=("U8", (N // 2, K)),
        weight_scale=("F32", (N, 1)),
        weight_scale_2=("F32", ()),
    ),
    "W8A16": parts(weight=("I8", (N, K)), weight_scale=("F32", (N,))),
    "W8A8_SQ_PER_CHANNEL": parts(
        weight=("I8", (N, K)), weight_scale=("F32", (N,)), input_scale=("F32", ())
    ),
}
"""What every algorithm stores."""
SPREADS: Final = {
    "fp8": Spread(0, 0, "scalar"),
    "fp8-blocks": Spread(128, 128),
    "nvfp4": Spread(1, 16),
    "mxfp4": Spread(1, 32),
    "mxfp8": Spread(1, 32),
    "int4": Spread(1, 128),
    "int8": Spread(1, 0, "vector"),
}


def only(said: Config, tensors: Tensors) -> Weight:
    (weight,) = component_of(said, tensors).weights
    return weight


def component_of(said: Config, tensors: Tensors) -> Component:
    """Lower a config that may have notes."""
    lowered = lower(ID, said, index_of(tensors))
    assert not [d for d in lowered.defects if d.problem.severity is not Severity.NOTE]
    (found,) = lowered.manifest.components
    return found


# The two files


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        ({"quantization": {"quant_algo": "FP8"}}, [("quantization",)]),
        (
            {"quantization_config": {"quant_method": "modelopt"}},
            [("quantization_config",)],
        ),
        (
            {"quantization_config": {"quant_method": "modelopt_fp4"}},
            [("quantization_config",)],
        ),
        (
            {"quantization_config": {"producer": {"name": "modelopt"}}},
            [("quantization_config",)],
        ),
        (
            {"quantization_config": {"quant_algo": "FP8", "config_groups": {}}},
            [("quantization_config",)],
        ),
        (
            {
                "quantization_config": {
                    "quant_method": "modelopt",
                    "quantization": {"quant_algo": "FP8"},
                }
            },
            [("quantization_config", "quantization")],
        ),
        ({"quantization": {"bits": 4, "group_size": 64}}, []),
        ({"quantization_config": {"quant_method": "fp8", "quant_algo": "FP8"}}, []),
        ({"quantization_config": {"producer": {"name": "quark"}}}, []),
    ],
)
def test_where_it_lies(raw: Config, keys: list[tuple[str, ...]]) -> None:
    assert list(dialect_named(ID).locate(raw)) == keys
    assert [each.id for each in recognize(raw) if each.id == ID] == [ID] * bool(keys)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:40])
def test_real_configs(path: Path) -> None:
    found = defects_of_real_config(path, ID)
    if not path.name.startswith(TWICE):
        assert found == ()
        return
    (defect,) = found
    assert defect.kind is DefectKind.CONTRADICTION
    assert defect.problem.severity is Severity.WARNING
    assert (
        "says quantized inputs, and 'lm_head' is W4A16_NVFP4" in defect.problem.message
    )


# Algorithms


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(algorithm: str) -> None:
    kind = ALGORITHMS[algorithm]
    scheme = only({"quant_algo": algorithm.lower()}, STORED[algorithm]).scheme
    assert isinstance(scheme, Integer | Scaled)
    assert scheme.bits == BITS[kind]
    expected = SPREADS[kind]
    if algorithm == "FP8_PB_WO":
        expected = Spread(128, 128, "spaced")
    if algorithm == "FP8_PER_CHANNEL_PER_TOKEN":
        expected = Spread(1, 0, "vector")
    assert scheme.spread == expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_s_tensors_are_as_promised(algorithm: str) -> None:
    tensors = STORED[algorithm]
    weight = only({"quant_algo": algorithm}, tensors)
    for part in weight.parts((N, K)):
        if part.optional and part.name not in tensors:
            continue
        dtype, shape = tensors[part.name]
        assert dtype in part.dtypes
        assert part.shape in {shape, None}


@pytest.mark.parametrize(
    ("algorithm", "nbytes"),
    [
        ("FP8", N * K + 4 + 4),
        ("FP8_PB_WO", N * K + 4 * 2),
        ("NVFP4", N * K // 2 + N * K // 16 + 4 + 4),
        ("MXFP8", N * K + N * K // 32),
        ("W4A16_AWQ", N * K // 2 + 4 * N),
        ("W4A8_AWQ", N * K // 2 + 4 * N + 4),
        ("W8A8_SQ_PER_CHANNEL", N * K + 4 * N + 4),
    ],
)
def test_sizes(algorithm: str, nbytes: int) -> None:
    index = index_of(STORED[algorithm])
    found = component(ID, {"quant_algo": algorithm}, index)
    there = stored_sizes(index, found)
    assert there.total - there.overhead == nbytes
    assert there.parameters == N * K
    known = {"": {"a.weight": ("BF16", (N, K))}}
    promised = sizes_of(Manifest(ID, components=(found,)), known)
    of_input = 4 if algorithm in {"W4A8_AWQ", "MXFP8"} else 0  # not stored here
    assert promised.total == nbytes + of_input
    assert promised.parameters == N * K


@pytest.mark.parametrize("shape", [(), (1,)])
def test_second_scales_and_scales_of_inputs_are_one_number(shape: Shape) -> None:
    one = ("F32", shape)
    tensors = nvfp4("a") | parts(weight_scale_2=one, input_scale=one)
    shapes = {
        part.role: part.shape
        for part in only({"quant_algo": "NVFP4"}, tensors).parts((N, K))
    }
    assert shapes["global_scale"] == shapes["input_scale"] == shape


@pytest.mark.parametrize(
    ("shape", "form"),
    [((), "scalar"), ((1,), "one"), ((N,), "vector"), ((N, 1), "table")],
)
def test_scales_of_fp8_are_one_or_one_for_each_output(shape: Shape, form: str) -> None:
    tensors = fp8("a") | parts(weight_scale=("F32", shape))
    scheme = only({"quant_algo": "FP8"}, tensors).scheme
    assert isinstance(scheme, Scaled)
    assert scheme.spread.form == form
    assert scheme.spread.shape((N, K)) == shape


@pytest.mark.parametrize(
    ("said", "group"),
    [
        ({"group_size": 32}, 32),
        ({}, 128),
        ({"config_groups": {"group_0": {"weights": {"group_size": 64}}}}, 64),
        (
            {
                "group_size": 32,
                "config_groups": {"group_0": {"weights": {"group_size": 64}}},
            },
            32,
        ),
    ],
)
def test_group_size_of_int4(said: Config, group: int) -> None:
    tensors = parts(weight=("U8", (N // 2, K)), weight_scale=("F32", (N, 4)))
    weight = only({"quant_algo": "W4A16_AWQ", **said}, tensors)
    assert weight.scheme.group_size == group


def test_the_low_rank_part_is_said_to_be_left_out() -> None:
    lowered = lower(ID, {"quant_algo": "NVFP4_SVD"}, index_of(STORED["NVFP4_SVD"]))
    (note,) = lowered.defects
    assert note.problem.severity is Severity.NOTE
    assert "svdquant_lora_a" in note.problem.message


def test_scales_of_the_cache_are_no_weights() -> None:
    said = {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    tensors = fp8("l.0.k_proj") | {
        "l.0.k_proj.k_scale": ("F32", ()),
        "l.0.k_proj.k_bias": ("F32", (N,)),
    }
    assert [w.name for w in component(ID, said, index_of(tensors)).weights] == [
        "l.0.k_proj.weight"
    ]


def stack(dtype: str = "U8") -> Tensors:
    """Describe a stack of experts as Llama 4 has it: inputs before outputs."""
    name, packed = "l.0.experts.gate_up_proj", dtype == "U8"
    tensors: Tensors = {
        name: (dtype, (4, K // 2 if packed else K, N)),
        f"{name}_weight_scale": ("F8_E4M3", (4, K // 16, N)),
        f"{name}_weight_scale_2": ("F32", ()),
        f"{name}_input_scale": ("F32", ()),
    }
    if not packed:
        tensors[f"{name}_weight_scale"] = ("F32", ())
        del tensors[f"{name}_weight_scale_2"]
    return tensors


@pytest.mark.parametrize(("algorithm", "dtype"), [("NVFP4", "U8"), ("FP8", "F8_E4M3")])
def test_stacks_are_measured(algorithm: str, dtype: str) -> None:
    tensors = stack(dtype)
    weight = only({"quant_algo": algorithm}, tensors)
    assert isinstance(weight.scheme, Opaque)
    assert weight.scheme.logical(tensors[weight.name][1]) == (4, N, K)
    for part in weight.parts((4, N, K)):
        stored_dtype, shape = tensors[part.name]
        assert stored_dtype in part.dtypes
        assert part.shape in {shape, None}
    index = index_of(tensors)
    sizes = stored_sizes(index, component(ID, {"quant_algo": algorithm}, index))
    assert sizes.parameters == 4 * N * K
    assert sizes.kept == 0


def test_stacks_are_named_by_their_module() -> None:
    said = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {"l.0.experts": {"quant_algo": "NVFP4"}},
    }
    (weight,) = component(ID, said, index_of(stack())).weights
    assert weight.pointer == "/quantized_layers/l.0.experts"


def test_bytes_of_two_dimensions_are_no_stack() -> None:
    tensors: Tensors = {
        "l.0.experts.up_proj": ("U8", (8, 8)),
        "l.0.experts.up_proj_weight_scale": ("F32", (8,)),
    }
    assert component(ID, {"quant_algo": "NVFP4"}, index_of(tensors)).weights == ()


def test_other_families_are_not_declared() -> None:
    tensors: Tensors = {
        "a.weight": ("F8_E4M3", (N, K)),
        "a.weight_scale_inv": ("F32", (2, 1)),
    }
    assert component(ID, {"quant_algo": "FP8"}, index_of(tensors)).weights == ()


# Layers of their own


def test_mixed_precision() -> None:
    said = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "l.0.q": {"quant_algo": "FP8"},
            "l.0.k": {"quant_algo": "fp8"},
            "l.0.experts": {"quant_algo": "NVFP4", "group_size": 16},
            "l.1.gone": {"quant_algo": "FP8"},
        },
    }
    tensors = fp8("l.0.q", "l.0.o") | nvfp4("l.0.experts.0.w1", "l.0.experts2.0.w1")
    tensors["l.0.k.weight"] = ("BF16", (N, K))
    tensors["l.0.k.bias"] = ("BF16", (N,))
    found = component(ID, said, index_of(tensors))
    start = "/quantized_layers/l.0"
    assert [(w.name, w.pointer, w.scheme.bits) for w in found.weights] == [
        ("l.0.q.weight", f"{start}.q", 8),
        ("l.0.experts.0.w1.weight", f"{start}.experts", 4),
        ("l.0.k.weight", f"{start}.k", 8),  # promised, and left 16-bit
    ]
    assert not found.every_linear
    assert [entry.pattern.text for entry in found.entries if not entry.matches] == [
        "l.1.gone"
    ]


def test_mixed_precision_has_to_say_what_is_mixed() -> None:
    (defect,) = lower(ID, {"quant_algo": "MIXED_PRECISION"}).defects
    assert defect.kind is DefectKind.MISSING_KEY


# Lists


@pytest.mark.parametrize("key", ["exclude_modules", "ignore"])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("lm_head", ["lm_head.weight"]),
        ("lm_*", ["lm_head.weight"]),
        ("*.gate", ["l.0.gate.weight"]),
        ("gate", []),
        ("l.0.exp*", ["l.0.experts.up_proj"]),
        ("l.0.experts", ["l.0.experts.up_proj"]),
    ],
)
def test_lists(key: str, text: str, kept: list[str]) -> None:
    tensors = fp8("l.0.q") | {
        "l.0.gate.weight": ("BF16", (4, K)),
        "l.0.experts.up_proj": ("BF16", (4, N, K)),
        "lm_head.weight": ("BF16", (8, K)),
    }
    found = component(ID, {"quant_algo": "FP8", key: [text]}, index_of(tensors))
    assert [each.name for each in found.kept] == kept
    assert found.every_linear
    (entry,) = found.entries
    assert (entry.reader, entry.also_read) == ("modelopt", ("vllm-modelopt",))


# What is said twice


def groups(bits: int, *targets: str, inputs: object = None) -> Config:
    """Say a group in compressed-tensors' words."""
    weights = {"num_bits": bits, "type": "float"}
    group: Config = {"weights": weights, "targets": list(targets)}
    if inputs:
        group["input_activations"] = inputs
    return {"config_groups": {"group_0": group}}


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"quant_algo": "FP8", **groups(8, "Linear")}, None),
        ({"quant_algo": "FP8", **groups(4, "Linear")}, "weights of 4 bits"),
        ({"quant_algo": "NVFP4", **groups(4, "Linear", inputs={"num_bits": 4})}, None),
        (
            {"quant_algo": "W4A16_NVFP4", **groups(4, "Linear", inputs={"x": 1})},
            "quantized inputs",
        ),
        ({"quant_algo": "W4A8_AWQ", **groups(4, "Linear")}, None),
        ({"quant_algo": "FP8", "config_groups": {"group_0": {"weights": 8}}}, None),
        ({"quant_algo": "FP8", "config_groups": {"group_0": None}}, None),
        (
            {
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {}},
                **groups(4, "b", "c", "a"),
            },
            "weights of 4 bits, and 'a' is FP8",
        ),
    ],
)
def test_groups(said: Config, wrong: str | None) -> None:
    found = of_kind(lower(ID, said), DefectKind.CONTRADICTION)
    assert len(found) == (wrong is not None)
    for defect in found:
        assert wrong is not None
        assert wrong in defect.problem.message
        assert defect.problem.severity is Severity.WARNING
        assert defect.problem.at[0].pointer == "/config_groups/group_0"


@pytest.mark.parametrize(("text", "count"), [("a.*", 1), ("b", 1), ("a", 0), ("x*", 0)])
def test_layers_that_a_list_leaves_alone(text: str, count: int) -> None:
    algorithm = {"quant_algo": "FP8"}
    said = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {"a.q": algorithm, "a.k": algorithm, "b": algorithm},
        "exclude_modules": [text],
    }
    found = of_kind(lower(ID, said), DefectKind.CONTRADICTION)
    assert [d.problem.at[0].pointer for d in found] == ["/exclude_modules/0"] * count


# What cannot be right


@pytest.mark.parametrize(
    ("said", "pointer", "kind"),
    [
        ({"quant_algo": "FP3"}, "/quant_algo", DefectKind.INVALID_VALUE),
        (
            {"quant_algo": "NVFP4", "group_size": 32},
            "/group_size",
            DefectKind.IMPOSSIBLE_SCHEME,
        ),
        (
            {
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {"a": {"quant_algo": "MIXED_PRECISION"}},
            },
            "/quantized_layers/a/quant_algo",
            DefectKind.INVALID_VALUE,
        ),
        (
            {
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {"a": {"quant_algo": "NVFP4", "group_size": 8}},
            },
            "/quantized_layers/a/group_size",
            DefectKind.IMPOSSIBLE_SCHEME,
        ),
    ],
)
def test_what_does_not_exist(said: Config, pointer: str, kind: DefectKind) -> None:
    (defect,) = lower(ID, said).defects
    assert (defect.problem.at[0].pointer, defect.kind) == (pointer, kind)


# Writing


@pytest.mark.parametrize(
    "algorithm",
    ["FP8", "FP8_PER_CHANNEL_PER_TOKEN", "NVFP4", "W4A16_AWQ", "MXFP8", "W8A16"],
)
def test_written_again(algorithm: str) -> None:
    index = index_of(STORED[algorithm] | {"lm_head.weight": ("BF16", (8, K))})
    first = lower(ID, {"quant_algo": algorithm, "exclude_modules": ["lm*"]}, index)
    written = emit_again(ID, first)
    assert written["exclude_modules"] == ["lm_head"]
    again = lower(ID, written, index)
    schemes = [
        [w.scheme for _, w in each.manifest.weights()] for each in (first, again)
    ]
    assert schemes[0] == schemes[1]


@pytest.mark.parametrize(
    "schemes",
    [
        (Affine(4, 64, ("F16",), "u32-lsb"),),
        (Affine(4, 64, ("F16",), "u32-lsb"), Affine(8, 64, ("F16",), "u32-lsb")),
    ],
)
def test_what_it_has_no_words_for(schemes: tuple[Scheme, ...]) -> None:
    weights = tuple(Weight(f"{at}.weight", s, "") for at, s in enumerate(schemes))
    emit = dialect_named(ID).emit
    with pytest.raises(EmitError):
        emit(Manifest(ID, components=(Component("", weights),)))
    with pytest.raises(EmitError):
        emit(Manifest(ID))
