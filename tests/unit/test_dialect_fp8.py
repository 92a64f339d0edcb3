"""`fp8`: scales of blocks and of all, spellings, experts, lists, NVFP4 beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from support.configs import CONFIGS, defects_of_real_config
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import BLOCK_FP8, EXPERT_FP8, MISTRAL_FP8, OWN_FP8, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine, Scaled
from qmanifest.schemes.floats import fp8_whole
from qmanifest.sizes import sizes_of, stored_sizes
from qmanifest.spreads import Spread
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.families import Family

Tensors: TypeAlias = dict[str, tuple[str, Shape]]
ID: Final = "fp8"
BLOCKS: Final = {"quant_method": ID, "weight_block_size": [128, 128]}
WHOLE: Final = {"quant_method": ID, "weight_block_size": None}
REAL = [path for path in CONFIGS if path.name.startswith(ID)]


def stored(
    *stems: str,
    shape: Shape = (256, 128),
    scales: Shape = (2, 1),
    dtype: str = "F32",
    suffix: str = "weight_scale_inv",
) -> Tensors:
    """Describe FP8 weights with their scales."""
    tensors: Tensors = {}
    for stem in stems:
        tensors[f"{stem}.weight"] = ("F8_E4M3", shape)
        tensors[f"{stem}.{suffix}"] = (dtype, scales)
    return tensors


def only(said: dict[str, Any], tensors: Tensors) -> Weight:
    (weight,) = component(ID, said, index_of(tensors)).weights
    return weight


def scheme(said: dict[str, Any], tensors: Tensors) -> Scaled:
    found = only(said, tensors).scheme
    assert isinstance(found, Scaled)
    return found


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        ({"quantization_config": BLOCKS}, [("quantization_config",)]),
        (
            {"text_config": {"quantization_config": BLOCKS}},
            [("text_config", "quantization_config")],
        ),
        ({"quantization_config": {"quant_method": "FP8"}}, [("quantization_config",)]),
        ({"quantization_config": {"quant_method": "fbgemm_fp8"}}, []),
    ],
)
def test_where_it_lies(raw: dict[str, Any], keys: list[tuple[str, ...]]) -> None:
    assert list(dialect_named(ID).locate(raw)) == keys


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:40])
def test_real_configs_have_no_defects(path: Path) -> None:
    assert defects_of_real_config(path, ID) == ()


# Scales


@pytest.mark.parametrize(
    ("said", "scales", "spread"),
    [
        (BLOCKS, (2, 1), Spread(128, 128)),
        ({"quant_method": ID}, (2, 1), Spread(128, 128)),
        ({"quant_method": ID}, (), Spread(0, 0, "scalar")),
        ({"quant_method": ID}, (1,), Spread(0, 0, "one")),
        (WHOLE, (), Spread(0, 0, "scalar")),
        (WHOLE, (1,), Spread(0, 0, "one")),
        (WHOLE, (2, 1), Spread(0, 0, "scalar")),
        (BLOCKS, (), Spread(128, 128)),
        ({**BLOCKS, "weight_block_size": [1, 32]}, (256, 4), Spread(1, 32)),
    ],
)
def test_blocks(said: dict[str, Any], scales: Shape, spread: Spread) -> None:
    """What a config says is not bent to what is stored; what it leaves open is."""
    assert scheme(said, stored("a", scales=scales)).spread == spread


@pytest.mark.parametrize(
    ("dtype", "said", "scale_format"),
    [
        ("F32", None, "float"),
        ("BF16", None, "float"),
        ("F32", "ue8m0", "float"),
        ("F8_E8M0", None, "e8m0"),
        ("F8_E8M0", "ue8m0", "e8m0"),
        ("U8", "ue8m0", "e8m0"),
        ("U8", None, "float"),
        ("U8", "float", "float"),
    ],
)
def test_powers_of_two(dtype: str, said: str | None, scale_format: str) -> None:
    """Plain bytes are exponents where the config says so, and else they are numbers."""
    found = scheme({**BLOCKS, "scale_fmt": said}, stored("a", dtype=dtype))
    assert found.scale_format == scale_format
    assert (dtype in found.scale) == (dtype != "U8" or said == "ue8m0")


@pytest.mark.parametrize(
    ("suffix", "family"),
    [
        ("weight_scale_inv", BLOCK_FP8),
        ("scale", OWN_FP8),
        ("qscale_weight", MISTRAL_FP8),
        ("weight_scale", SCALED),
    ],
)
def test_spellings(suffix: str, family: Family) -> None:
    """A weight without a scale is taken to be spelt as the others are."""
    tensors = stored("a", suffix=suffix) | {"b.weight": ("F8_E4M3", (256, 128))}
    found = component(ID, BLOCKS, index_of(tensors)).weights
    assert [weight.names for weight in found] == [family.names] * 2
    assert found[1].part("scales") == f"b.{suffix}"


def test_a_weight_alone_lacks_what_transformers_looks_for() -> None:
    found = only(BLOCKS, {"a.weight": ("F8_E4M3", (256, 128))})
    assert found.part("scales") == "a.weight_scale_inv"


# Scales of inputs


@pytest.mark.parametrize(
    ("suffix", "of_input", "role"),
    [
        ("weight_scale_inv", "activation_scale", "activation_scale"),
        ("weight_scale_inv", "input_scale", "input_scale"),
        ("weight_scale", "input_scale", "input_scale"),
        ("qscale_weight", "qscale_act", "input_scale"),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_static_inputs(suffix: str, of_input: str, role: str, shape: Shape) -> None:
    said = {**WHOLE, "activation_scheme": "static"}
    tensors = stored("a", scales=(), suffix=suffix) | {f"a.{of_input}": ("F32", shape)}
    weight = only(said, tensors)
    (extra,) = weight.scheme.extras if isinstance(weight.scheme, Scaled) else ()
    assert (extra.role, extra.shape, extra.optional) == (role, shape, False)
    assert weight.part(role) == f"a.{of_input}"


@pytest.mark.parametrize(
    ("suffix", "missing"),
    [
        ("weight_scale_inv", "a.activation_scale"),
        ("weight_scale", "a.input_scale"),
        ("qscale_weight", "a.qscale_act"),
    ],
)
def test_static_inputs_need_scales(suffix: str, missing: str) -> None:
    said = {**WHOLE, "activation_scheme": "STATIC"}
    weight = only(said, stored("a", scales=(), suffix=suffix))
    needed = {part.name for part in weight.parts() if not part.optional}
    assert missing in needed


def test_dynamic_inputs_need_none() -> None:
    assert only(BLOCKS, stored("a")).scheme.optional == ()
    tensors = stored("a") | {"a.input_scale": ("F32", ())}
    assert only(BLOCKS, tensors).scheme.optional == ("input_scale",)


# Experts


def stacked(*, scales: Shape = (4, 2, 1), static: bool = False) -> Tensors:
    tensors: Tensors = {
        "l.0.experts.up_proj": ("F8_E4M3", (4, 256, 128)),
        "l.0.experts.up_proj_scale_inv": ("F32", scales),
    }
    if static:
        tensors["l.0.experts.up_proj_activation_scale"] = ("F32", (4,))
    return tensors


def test_stacks() -> None:
    weight = only(BLOCKS, stacked())
    assert (weight.name, weight.names) == ("l.0.experts.up_proj", EXPERT_FP8.names)
    shapes = {part.role: part.shape for part in weight.parts((4, 256, 128))}
    assert shapes == {"codes": (4, 256, 128), "scales": (4, 2, 1)}


def test_stacks_with_one_scale_for_each_expert() -> None:
    said = {**WHOLE, "activation_scheme": "static"}
    weight = only(said, stacked(scales=(4, 1, 1), static=True))
    shapes = {part.role: part.shape for part in weight.parts((4, 256, 128))}
    assert shapes["scales"] == (4, 1, 1)
    assert shapes["activation_scale"] == (4,)


@pytest.mark.parametrize(
    ("rows", "scales", "spread"),
    [
        (64, (4, 2, 1), Spread(32, 128)),
        (64, (4, 1, 1), Spread(128, 128)),
        (256, (4, 2, 1), Spread(128, 128)),
    ],
)
def test_halves_of_a_small_stack_have_a_scale_each(
    rows: int, scales: Shape, spread: Spread
) -> None:
    tensors: Tensors = {
        "experts.gate_up_proj": ("F8_E4M3", (4, rows, 128)),
        "experts.gate_up_proj_scale_inv": ("F32", scales),
    }
    found = scheme(BLOCKS, tensors)
    assert found.spread == spread
    assert found.spread.shape((4, rows, 128)) == scales


def test_stacks_without_scales_are_found() -> None:
    tensors = stacked()
    del tensors["l.0.experts.up_proj_scale_inv"]
    tensors["l.0.other_weight_scale"] = ("F8_E4M3", (4, 256, 8))
    assert only(BLOCKS, tensors).part("scales") == "l.0.experts.up_proj_scale_inv"


@pytest.mark.parametrize(
    ("text", "kept"),
    [("l.0.experts", True), (".experts", True), ("l.1.experts", False)],
)
def test_lists_reach_stacks_by_their_module(text: str, *, kept: bool) -> None:
    said = {**BLOCKS, "modules_to_not_convert": [text]}
    tensors = stored("a") | {"l.0.experts.up_proj": ("BF16", (4, 256, 128))}
    found = component(ID, said, index_of(tensors)).kept
    assert [each.name for each in found] == ["l.0.experts.up_proj"] * kept


@pytest.mark.parametrize("dtype", ["F8_E8M0", "U8", "F32"])
@pytest.mark.parametrize("suffix", ["scale", "weight_scale_inv"])
def test_fp4_experts(dtype: str, suffix: str) -> None:
    said = {**BLOCKS, "expert_dtype": "fp4", "scale_fmt": "ue8m0"}
    tensors: Tensors = {
        "experts.0.w1.weight": ("I8", (64, 64)),
        f"experts.0.w1.{suffix}": (dtype, (64, 4)),
    }
    found = scheme(said, tensors)
    assert (found.element, found.pack, found.spread) == (
        "e2m1",
        "i8-lsb",
        Spread(1, 32),
    )
    assert found.scale_format == ("float" if dtype == "F32" else "e8m0")
    assert found.logical((64, 64)) == (64, 128)


def test_bytes_are_no_fp4_where_experts_are_fp8() -> None:
    said = {**BLOCKS, "expert_dtype": "fp8"}
    tensors: Tensors = {"a.weight": ("I8", (256, 128)), "a.scale": ("F32", (2, 1))}
    assert scheme(said, tensors).pack == "f8-e4m3"


# Lists


@pytest.mark.parametrize(
    ("key", "text", "kept"),
    [
        ("modules_to_not_convert", "gate", ["l.0.mlp.gate.weight"]),
        ("modules_to_not_convert", "l.*.gate", ["l.0.mlp.gate.weight"]),
        ("ignored_layers", "gate", []),
        ("ignored_layers", "l.0.mlp.gate", ["l.0.mlp.gate.weight"]),
        ("ignore", "l.0.mlp.gate", []),
    ],
)
def test_lists(key: str, text: str, kept: list[str]) -> None:
    """Transformers reads expressions and ends of names, vLLM whole names."""
    index = index_of(stored("a") | {"l.0.mlp.gate.weight": ("BF16", (4, 128))})
    found = component(ID, {**BLOCKS, key: [text]}, index)
    assert [each.name for each in found.kept] == kept
    assert found.every_linear
    assert all(entry.unused is Severity.NOTE for entry in found.entries)


@pytest.mark.parametrize(
    ("text", "unused"),
    [
        ("l.0.gone", Severity.NOTE),
        ("l.0.gate.correction_bias", None),
        ("l.0.indexers_proj", Severity.WARNING),
    ],
)
def test_entries_that_match_nothing(text: str, unused: Severity | None) -> None:
    """A real list has `indexers_proj`, left of `indexer.weights_proj.weight`."""
    tensors: Tensors = {
        "l.0.indexer.weights_proj.weight": ("BF16", (4, 128)),
        "l.0.gate.correction_bias": ("F32", (4,)),
    }
    said = {**BLOCKS, "modules_to_not_convert": [text]}
    (entry,) = component(ID, said, index_of(stored("a") | tensors)).entries
    assert (entry.matches, entry.unused) == ((), unused)
    (entry,) = component(ID, said).entries
    assert entry.unused is Severity.NOTE


def test_embeddings_that_are_converted_too() -> None:
    said = {**BLOCKS, "modules_to_convert": ["embed_tokens"]}
    tensors = stored("embed_tokens") | {"x.embed_tokens.weight": ("BF16", (256, 128))}
    found = component(ID, said, index_of(tensors)).weights
    pointer = "/modules_to_convert/0"
    assert [(weight.name, weight.pointer) for weight in found] == [
        ("embed_tokens.weight", pointer),
        ("x.embed_tokens.weight", pointer),
    ]


# NVFP4 beside it

AGAIN: Final = {
    **BLOCKS,
    "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {"l.0.experts": {"quant_algo": "NVFP4", "group_size": 16}},
}


def nvfp4(*stems: str) -> Tensors:
    tensors: Tensors = {}
    for stem in stems:
        tensors[f"{stem}.weight"] = ("U8", (64, 64))
        tensors[f"{stem}.weight_scale"] = ("F8_E4M3", (64, 8))
        tensors[f"{stem}.weight_scale_2"] = ("F32", ())
    return tensors


def test_nvfp4_only_where_the_config_says_it() -> None:
    tensors = stored("l.0.attn") | nvfp4("l.0.experts.0.w1", "l.1.experts.0.w1")
    tensors["l.0.experts.1.w1.weight"] = ("BF16", (64, 128))
    found = component(ID, AGAIN, index_of(tensors)).weights
    pointer = "/quantized_layers/l.0.experts"
    assert [(weight.name, weight.pointer) for weight in found] == [
        ("l.0.attn.weight", ""),
        ("l.0.experts.0.w1.weight", pointer),
        ("l.0.experts.1.w1.weight", pointer),  # promised, and left 16-bit
    ]
    assert found[1].part("global_scale") == "l.0.experts.0.w1.weight_scale_2"


def test_other_algorithms_beside_it_are_not_known() -> None:
    said = {**BLOCKS, "quantized_layers": {"a": {"quant_algo": "W4A16_AWQ"}}}
    (defect,) = lower(ID, said).defects
    assert defect.kind is DefectKind.INVALID_VALUE
    assert defect.problem.severity is Severity.WARNING


# What cannot be right


@pytest.mark.parametrize(
    ("key", "value"),
    [("activation_scheme", "token"), ("scale_fmt", "e8m0"), ("expert_dtype", "int4")],
)
def test_values_that_no_reader_has(key: str, value: str) -> None:
    (defect,) = of_kind(lower(ID, {**BLOCKS, key: value}), DefectKind.INVALID_VALUE)
    assert defect.problem.at[0].pointer == f"/{key}"
    assert value in defect.problem.message


@pytest.mark.parametrize("value", [[128], [128, 0], [128, 128, 128], 128])
def test_blocks_that_do_not_exist(value: object) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, {"quant_method": ID, "weight_block_size": value})


def test_unknown_keys() -> None:
    near, far = lower(ID, {**BLOCKS, "weight_block_sizes": 1, "x": 1}).defects
    assert near.problem.severity is Severity.WARNING
    assert far.problem.severity is Severity.NOTE


# Sizes


@pytest.mark.parametrize(
    ("said", "tensors", "shape", "nbytes"),
    [
        # a byte for each weight, and four for each block, cut ones included
        (
            BLOCKS,
            stored("a", shape=(587, 200), scales=(5, 2)),
            (587, 200),
            587 * 200 + 40,
        ),
        # one for each block where it is an exponent
        (
            {**BLOCKS, "scale_fmt": "ue8m0"},
            stored("a", shape=(587, 200), scales=(5, 2), dtype="U8"),
            (587, 200),
            587 * 200 + 10,
        ),
        (WHOLE, stored("a", scales=()), (256, 128), 256 * 128 + 4),
        # half a byte for each weight, and one for each 32
        (
            BLOCKS,
            {"a.weight": ("I8", (64, 64)), "a.scale": ("F8_E8M0", (64, 4))},
            (64, 128),
            64 * 128 // 2 + 64 * 128 // 32,
        ),
    ],
)
def test_sizes(
    said: dict[str, Any], tensors: Tensors, shape: Shape, nbytes: int
) -> None:
    index = index_of(tensors)
    found = component(ID, said, index)
    there = stored_sizes(index, found)
    assert there.total - there.overhead == nbytes
    promised = sizes_of(
        Manifest(ID, components=(found,)), {"": {"a.weight": ("BF16", shape)}}
    )
    assert (promised.total, promised.unknown) == (nbytes, ())
    assert there.parameters == promised.parameters == shape[0] * shape[1]


# Writing


@pytest.mark.parametrize(
    ("said", "tensors"),
    [
        ({**BLOCKS, "modules_to_not_convert": ["lm_head"]}, stored("a")),
        (WHOLE, stored("a", scales=())),
        ({**BLOCKS, "scale_fmt": "ue8m0"}, stored("a", dtype="F8_E8M0")),
        (
            {**WHOLE, "activation_scheme": "static"},
            stored("a", scales=()) | {"a.activation_scale": ("F32", ())},
        ),
    ],
)
def test_written_again(said: dict[str, Any], tensors: Tensors) -> None:
    index = index_of(tensors | {"lm_head.weight": ("BF16", (8, 128))})
    first = lower(ID, said, index)
    written = emit_again(ID, first)
    assert {key: written[key] for key in said} == said
    again = lower(ID, written, index)
    assert [w.scheme for _, w in again.manifest.weights()] == [
        w.scheme for _, w in first.manifest.weights()
    ]


def test_what_it_has_no_words_for() -> None:
    whole = Weight("a.weight", scheme(WHOLE, stored("a", scales=())), "")
    blocks = Weight("b.weight", scheme(BLOCKS, stored("b")), "")
    affine = Weight("a.weight", Affine(4, 64, ("F16",), "u32-lsb"), "")
    rows = Weight("a.weight", fp8_whole("vector"), "")
    emit = dialect_named(ID).emit
    for weights in ((affine,), (rows,), (whole, blocks)):
        with pytest.raises(EmitError):
            emit(Manifest(ID, components=(Component("", weights),)))
    with pytest.raises(EmitError):
        emit(Manifest(ID))
