"""`auto-round`: formats of tensors, layers that differ, blocks, and what is emitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, emit_again, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.dtypes import FLOAT
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import GPTQ
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Opaque, Scaled, qweight
from qmanifest.schemes.floats import mxfp8, packed_floats
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
PLAIN: Final[Config] = {
    "quant_method": "auto-round",
    "bits": 4,
    "group_size": 64,
    "sym": False,
}
Tensors = dict[str, "tuple[str, Shape]"]


def stored(*modules: str, dense: tuple[str, ...] = ()) -> TensorIndex:
    """Index GPTQ's tensors of 64 x 128 weights, and plain matrices."""
    tensors: Tensors = {}
    for module in modules:
        tensors[f"{module}.qweight"] = ("I32", (16, 64))
        tensors[f"{module}.qzeros"] = ("I32", (2, 8))
        tensors[f"{module}.scales"] = ("F16", (2, 64))
    return index_of(tensors | dict.fromkeys(dense, ("F16", (64, 128))))


def only(config: Config, index: TensorIndex) -> Scheme | None:
    """Lower a config against one weight."""
    (found,) = lower("auto-round", PLAIN | config, index).manifest.components
    return found.weights[0].scheme if found.weights else None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, qweight.gptq(4, 64, plus=1)),
        ({"sym": True}, qweight.gptq(4, 64, plus=1, symmetric=True)),
        ({"packing_format": "auto_round"}, qweight.gptq(4, 64, plus=0)),
        ({"packing_format": "auto_round:gptqmodel"}, qweight.gptq(4, 64, plus=0)),
        ({"packing_format": "auto_round:auto_gptq"}, qweight.gptq(4, 64, plus=1)),
        (
            {"packing_format": "auto_round:auto_gptq:exllamav2"},
            qweight.gptq(4, 64, plus=1),
        ),
        ({"backend": "auto_round:gptq"}, qweight.gptq(4, 64, plus=1)),
        ({"backend": "auto_round"}, qweight.gptq(4, 64, plus=0)),
        ({"backend": "auto"}, qweight.gptq(4, 64, plus=1)),
        ({"packing_format": "auto_round:auto_awq"}, qweight.awq_gemm(4, 64)),
        ({"bits": 5, "group_size": -1}, qweight.gptq(5, 0, plus=1)),
        ({"bits": 0}, qweight.undecoded("auto_round:auto_gptq", 0, 64)),
        ({"packing_format": "auto_round:llm_compressor"}, None),
        ({"packing_format": "auto_round:fp8_static"}, None),
    ],
)
def test_words(config: Config, expected: Scheme | None) -> None:
    assert only(config, stored("a")) == expected


def fp8(form: Any, element: str = "e4m3") -> Scaled:  # noqa: ANN401 - a form
    rows = 0 if form in {"scalar", "one"} else 1
    made = only(
        {"bits": 8, "data_type": "fp8", "packing_format": "auto_round:fp8_static"},
        index_of(
            {
                "a.weight": (f"F8_{element.upper()}", (64, 128)),
                "a.weight_scale": (
                    "BF16",
                    {"scalar": (), "one": (1,), "vector": (64,), "table": (64, 1)}[
                        form
                    ],
                ),
            }
        ),
    )
    assert isinstance(made, Scaled)
    assert made.spread == Spread(rows, 0, form)
    assert made.element == element
    return made


@pytest.mark.parametrize("form", ["scalar", "one", "vector", "table"])
@pytest.mark.parametrize("element", ["e4m3", "e5m2"])
def test_fp8_s_scales_are_as_they_are_stored(form: str, element: str) -> None:
    made = fp8(form, element)
    dtypes = {role: dtypes for role, dtypes, _ in made.parts(None)}
    assert "BF16" in dtypes["input_scale"]
    assert made.optional == ("input_scale",)


def test_fp8_in_tiles() -> None:
    index = index_of(
        {
            "a.weight": ("F8_E4M3", (64, 128)),
            "a.weight_scale_inv": ("BF16", (2, 2)),
        }
    )
    config = {"bits": 8, "group_size": [32, 64], "data_type": "fp8"}
    made = only(config, index)
    assert isinstance(made, Scaled)
    assert made.spread == Spread(32, 64)
    assert only({"group_size": [32, 64], "data_type": "fp8"}, index) is None


PACKED: Final[Tensors] = {
    "a.weight_packed": ("U8", (64, 64)),
    "a.weight_scale": ("U8", (64, 4)),
}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"data_type": "mx_fp"}, packed_floats("mx_fp", 4)),
        ({"data_type": "nv_fp4_with_static_gs"}, packed_floats("nv_fp", 4)),
        ({"data_type": "int"}, None),
        ({"data_type": "mx_fp", "bits": 8}, None),
    ],
)
def test_floats_that_are_packed(config: Config, expected: Scheme | None) -> None:
    packing = {"packing_format": "auto_round:llm_compressor"}
    assert only(packing | config, index_of(PACKED)) == expected


def test_mxfp8() -> None:
    index = index_of(
        {"a.weight": ("F8_E4M3", (64, 128)), "a.weight_scale": ("U8", (64, 4))}
    )
    config = {"data_type": "mx_fp", "packing_format": "auto_round:llm_compressor"}
    assert only(config | {"bits": 8}, index) == mxfp8()
    assert only(config, index) is None


def test_scales_of_a_float_without_a_dtype_are_measured() -> None:
    packing = {"packing_format": "auto_round:llm_compressor_nvfp4_e5m3"}
    made = only(packing | {"data_type": "nvfp4_v2"}, index_of(PACKED))
    assert isinstance(made, Opaque)
    assert made.logical((64, 64)) == (64, 128)


def test_names_count_before_expressions() -> None:
    extra = {
        ".*k_proj.*": {"bits": 8},
        "a.k_proj": {"bits": 2, "group_size": 32, "sym": True},
        "proj": {"group_size": -1},
    }
    index = stored("a.k_proj", "b.k_proj", "b.q_proj", "c")
    found = component("auto-round", PLAIN | {"extra_config": extra}, index)
    assert {w.name: (w.scheme, w.pointer) for w in found.weights} == {
        "a.k_proj.weight": (
            qweight.gptq(2, 32, plus=1, symmetric=True),
            "/extra_config/a.k_proj",
        ),
        "b.k_proj.weight": (
            qweight.gptq(8, 64, plus=1),
            "/extra_config/.*k_proj.*",
        ),
        "b.q_proj.weight": (qweight.gptq(4, 0, plus=1), "/extra_config/proj"),
        "c.weight": (qweight.gptq(4, 64, plus=1), ""),
    }


def test_a_name_is_quantized_though_an_expression_keeps_it() -> None:
    extra = {".*k_proj.*": {"bits": 16}, "a.k_proj": {"bits": 8}}
    index = stored("a.k_proj", dense=("b.k_proj.weight",))
    found = component("auto-round", PLAIN | {"extra_config": extra}, index)
    assert [(w.name, w.scheme.bits) for w in found.weights] == [("a.k_proj.weight", 8)]
    assert [kept.name for kept in found.kept] == ["b.k_proj.weight"]


def test_sixteen_bits_are_kept() -> None:
    extra = {"a": {"bits": 16, "data_type": "fp"}, ".*norm": {"bits": 32}, "b": {}}
    index = stored("b", dense=("a.weight", "x.norm.weight"))
    found = component("auto-round", PLAIN | {"extra_config": extra}, index)
    assert found.kept == (
        Kept("a.weight", "/extra_config/a", FLOAT),
        Kept("x.norm.weight", "/extra_config/.*norm", FLOAT),
    )
    assert {(e.purpose, e.unused) for e in found.entries} == {
        ("keep", Severity.NOTE),
        ("quantize", Severity.WARNING),
    }


@pytest.mark.parametrize(
    "blocks",
    [
        {"block_name_to_quantize": "model.layers, model.more"},
        {"block_name_to_quantize": ["model.layers", "model.more"]},
        {"quant_block_list": ["model.layers", "model.more"]},
        {
            "quant_block_list": [["model.layers.0", "model.layers.1"], ["model.more"]],
            "block_name_to_quantize": "visual",
        },
        {
            "to_quant_block_names": [
                ["model.layers.0", "model.layers.1"],
                ["model.more"],
            ]
        },
    ],
)
def test_blocks(blocks: Config) -> None:
    index = stored("model.layers.1.a", "model.more.b", "lm_head", "visual.c")
    config = PLAIN | blocks | {"extra_config": {"lm_head": {"bits": 8}}}
    found = component("auto-round", config, index)
    names = [weight.name for weight in found.weights]
    assert names == ["model.layers.1.a.weight", "model.more.b.weight", "lm_head.weight"]
    assert found.every_linear


def test_without_tensors_nothing_is_named_but_names() -> None:
    extra = {"a": {"bits": 16}, ".*b.*": {"bits": 16}}
    found = component("auto-round", PLAIN | {"extra_config": extra})
    assert [kept.name for kept in found.kept] == ["a.weight"]
    assert found.weights == ()


@pytest.mark.parametrize(
    ("config", "kind", "pointer"),
    [
        ({"bits": 1}, DefectKind.IMPOSSIBLE_SCHEME, "/bits"),
        (
            {"extra_config": {"a": {"bits": 12}}},
            DefectKind.IMPOSSIBLE_SCHEME,
            "/extra_config/a/bits",
        ),
        ({"packing_format": "tensorrt"}, DefectKind.INVALID_VALUE, "/packing_format"),
        ({"group_sizes": 64}, DefectKind.UNKNOWN_KEY, "/group_sizes"),
    ],
)
def test_defects(config: Config, kind: DefectKind, pointer: str) -> None:
    lowered = lower("auto-round", PLAIN | config, stored("a"))
    assert [d.kind for d in lowered.defects] == [kind]
    assert lowered.defects[0].problem.at[0].pointer == pointer


@pytest.mark.parametrize(
    "config",
    [
        {"group_size": -2},
        {"group_size": [128]},
        {"group_size": [0, 128]},
        {"bits": None},
        {"extra_config": {"a": 8}},
        {"block_name_to_quantize": 3},
    ],
)
def test_invalid_documents(config: Config) -> None:
    with pytest.raises(InvalidConfigError):
        lower("auto-round", PLAIN | config)


@pytest.mark.parametrize(
    ("block", "beside", "found"),
    [
        ({"quant_method": "auto-round"}, {}, True),
        ({"quant_method": "intel/auto-round"}, {}, True),
        ({"quant_method": "auto-round"}, {"quantization": {"bits": 4}}, True),
        ({"quant_method": "auto-round", "packing_format": "mlx"}, {}, True),
        (
            {"quant_method": "auto-round", "packing_format": "mlx"},
            {"quantization": {"bits": 4, "group_size": 64}},
            False,
        ),
        ({"quant_method": "gptq"}, {}, False),
    ],
)
def test_where_documents_lie(block: Config, beside: Config, *, found: bool) -> None:
    raw = {"model_type": "x", "quantization_config": block, **beside}
    expected = (("quantization_config",),) if found else ()
    assert dialect_named("auto-round").locate(raw) == expected


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"sym": True},
        {"packing_format": "auto_round"},
        {"packing_format": "auto_round:auto_awq"},
        {"bits": 5, "group_size": -1},
        {"extra_config": {"a": {"bits": 8}, "b": {"bits": 16}}},
    ],
)
def test_emitted_is_lowered_to_the_same(config: Config) -> None:
    index = stored("a", "c", "d", dense=("b.weight",))
    first = lower("auto-round", PLAIN | config, index)
    again = lower("auto-round", emit_again("auto-round", first), index)
    (one,), (two,) = first.manifest.components, again.manifest.components
    assert [(w.name, w.scheme) for w in one.weights] == [
        (w.name, w.scheme) for w in two.weights
    ]
    assert [kept.name for kept in one.kept] == [kept.name for kept in two.kept]


def test_awq_is_said_to_have_zero_points() -> None:
    config = PLAIN | {"packing_format": "auto_round:auto_awq", "sym": True}
    document = emit_again("auto-round", lower("auto-round", config, stored("a")))
    assert document["sym"] is False


@pytest.mark.parametrize(
    "schemes",
    [
        (Affine(4, 64, FLOAT, "u32-lsb"),),
        (qweight.gptq(4, 64, plus=1), qweight.gptq(4, 64, plus=0)),
        (qweight.gptq(5, 64, plus=0, planes=True),),
    ],
)
def test_what_cannot_be_emitted(schemes: tuple[Scheme, ...]) -> None:
    weights = tuple(
        Weight(f"{n}.weight", s, "", names=GPTQ.names) for n, s in enumerate(schemes)
    )
    manifest = Manifest("made", components=(Component("", weights),))
    with pytest.raises(EmitError):
        dialect_named("auto-round").emit(manifest)


def test_emitting_several_models_is_refused() -> None:
    with pytest.raises(EmitError, match="one model"):
        dialect_named("auto-round").emit(Manifest("made"))
