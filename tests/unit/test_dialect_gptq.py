"""`gptq`: keys and their old names, `dynamic`, formats, and what the tensors say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named
from qmanifest.dtypes import FLOAT
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import GPTQ, MARLIN
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Opaque, qweight

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
PLAIN: Final[Config] = {"quant_method": "gptq", "bits": 4, "group_size": 64}


def stored(
    *modules: str, dense: tuple[str, ...] = (), dtype: str = "I32"
) -> TensorIndex:
    """Index GPTQ's tensors of 64 x 128 weights, and plain matrices."""
    tensors: dict[str, tuple[str, Shape]] = {}
    for module in modules:
        tensors[f"{module}.qweight"] = (dtype, (16, 64))
        tensors[f"{module}.qzeros"] = (dtype, (2, 8))
        tensors[f"{module}.scales"] = ("F16", (2, 64))
    return index_of(tensors | dict.fromkeys(dense, ("F16", (64, 128))))


def scheme(config: Config) -> Scheme:
    (found,) = lower("gptq", PLAIN | config, stored("a")).manifest.components
    (weight,) = found.weights
    assert weight.names is GPTQ.names
    return weight.scheme


def test_what_is_stored_is_quantized() -> None:
    found = component("gptq", PLAIN, stored("a", "b.c", dense=("norm.weight",)))
    first = qweight.gptq(4, 64, plus=1, symmetric=True)
    assert found.weights == tuple(
        Weight(name, first, "", names=GPTQ.names) for name in ("a.weight", "b.c.weight")
    )
    assert found.kept == ()
    assert found.every_linear


def test_without_tensors_nothing_is_named() -> None:
    assert component("gptq", PLAIN | {"dynamic": {"+:a": {"bits": 8}}}).weights == ()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, qweight.gptq(4, 64, plus=1, symmetric=True)),
        ({"sym": False}, qweight.gptq(4, 64, plus=1)),
        ({"bits": 0}, qweight.undecoded("gptq", 0, 64)),
        ({"bits": 12, "format": "marlin"}, qweight.undecoded("marlin", 12, 64)),
        ({"zero_point": True}, qweight.gptq(4, 64, plus=1)),
        (
            {"sym": True, "zero_point": True},
            qweight.gptq(4, 64, plus=1, symmetric=True),
        ),
        (
            {"checkpoint_format": "GPTQ_v2"},
            qweight.gptq(4, 64, plus=0, symmetric=True),
        ),
        ({"format": "gptq_v2"}, qweight.gptq(4, 64, plus=0, symmetric=True)),
        (
            {"checkpoint_format": "gptq_p", "bits": 3},
            qweight.gptq(3, 64, plus=0, planes=True, symmetric=True),
        ),
        ({"group_size": -1}, qweight.gptq(4, 0, plus=1, symmetric=True)),
        (
            {"desc_act": True},
            qweight.gptq(4, 64, plus=1, symmetric=True, listed=True),
        ),
        (
            {"desc_act": True, "group_size": -1},
            qweight.gptq(4, 0, plus=1, symmetric=True),
        ),
        ({"checkpoint_format": "marlin"}, qweight.marlin(4, 64)),
        ({"is_marlin_format": True}, qweight.marlin(4, 64)),
        ({"quant_method": "marlin", "group_size": -1}, qweight.marlin(4, 0)),
        ({"format": "bitblas"}, qweight.undecoded("bitblas", 4, 64)),
        ({"pack_dtype": "int16"}, qweight.gptq_in_words(4, 64, 16)),
        ({"pack_dtype": "torch.int64"}, qweight.gptq_in_words(4, 64, 64)),
        ({"pack_dtype": "int8", "bits": 3}, qweight.undecoded("gptq-int8", 3, 64)),
    ],
)
def test_numbers_and_formats(config: Config, expected: Scheme) -> None:
    assert scheme(config) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"wbits": 3, "q_group_size": 32, "desc_act": False},
        {"w_bit": 3, "q_group_size": 32, "quant_method": "gptq"},
        {"bits": 3, "group_size": 32, "method": "gptq"},
    ],
)
def test_old_names(config: Config) -> None:
    (weight,) = component("gptq", config, stored("a")).weights
    assert weight.scheme == qweight.gptq(3, 32, plus=1, symmetric=True)


def test_defaults() -> None:
    (weight,) = component("gptq", {"quant_method": "gptq"}, stored("a")).weights
    assert weight.scheme == qweight.gptq(4, 128, plus=1, symmetric=True)


@pytest.mark.parametrize("bits", [5, 6, 7])
@pytest.mark.parametrize("layout", ["gptq", "gptq_v2", "gptq_p"])
def test_some_widths_have_planes_alone(bits: int, layout: str) -> None:
    planes = qweight.gptq(bits, 64, plus=0, planes=True, symmetric=True)
    assert scheme({"bits": bits, "checkpoint_format": layout}) == planes


def test_one_module_in_planes_puts_all_in_planes() -> None:
    dynamic = {"-:c": {"bits": 7}, "+:b": {"bits": 5}}
    found = component("gptq", PLAIN | {"dynamic": dynamic}, stored("a", "b"))
    assert [w.scheme for w in found.weights] == [
        qweight.gptq(4, 64, plus=0, symmetric=True),  # one plane is the bit stream
        qweight.gptq(5, 64, plus=0, planes=True, symmetric=True),
    ]
    three = component("gptq", PLAIN | {"bits": 3, "dynamic": dynamic}, stored("a"))
    assert three.weights[0].scheme.pack == "i32-planes-down"
    kept_only = {"dynamic": {"-:b": {"bits": 5}}}
    assert scheme(kept_only).pack == "i32-lsb-down"


def test_overrides_by_the_first_pattern_that_matches() -> None:
    dynamic = {
        "-:b\\.": {},
        "a\\.q": {"bits": 8},
        "+:a": {"group_size": 32, "sym": False, "desc_act": True},
        "+:c": None,
    }
    index = stored("a.q", "a.k", "c", "x.a.q", dense=("b.q.weight",))
    found = component("gptq", PLAIN | {"dynamic": dynamic}, index)
    first = qweight.gptq(4, 64, plus=1, symmetric=True)
    assert {w.name: (w.scheme, w.pointer) for w in found.weights} == {
        "a.q.weight": (
            qweight.gptq(8, 64, plus=1, symmetric=True),
            "/dynamic/a\\.q",
        ),
        "a.k.weight": (qweight.gptq(4, 32, plus=1, listed=True), "/dynamic/+:a"),
        "c.weight": (first, "/dynamic/+:c"),
        "x.a.q.weight": (first, ""),
    }
    assert found.kept == (Kept("b.q.weight", "/dynamic/-:b\\.", FLOAT),)


def test_what_keeps_is_asked_first_as_gptqmodel_does() -> None:
    dynamic = {"+:a": {"bits": 8}, "-:a\\.q": {}}
    found = component("gptq", PLAIN | {"dynamic": dynamic}, stored("a.q", "a.k"))
    assert [(w.name, w.scheme.bits) for w in found.weights] == [("a.k.weight", 8)]
    assert [kept.name for kept in found.kept] == ["a.q.weight"]


def test_patterns_keep_their_text() -> None:
    found = component("gptq", PLAIN | {"dynamic": {"-:a": {}, "+:lm_head": {}}})
    assert [(e.pattern.text, e.purpose, e.unused) for e in found.entries] == [
        ("-:a", "keep", Severity.WARNING),
        ("+:lm_head", "quantize", Severity.NOTE),
    ]


@pytest.mark.parametrize("modules", [["q", "k"], [["q"], ["k"]]])
def test_modules_listed(modules: list[Any]) -> None:
    config = PLAIN | {"modules_in_block_to_quantize": modules}
    found = component("gptq", config, stored("a.q", "a.k", "a.v"))
    assert [weight.name for weight in found.weights] == ["a.q.weight", "a.k.weight"]


def test_modules_listed_are_lines_where_nothing_else_names_them() -> None:
    config = PLAIN | {"modules_in_block_to_quantize": [["q"], ["gone"]]}
    found = component("gptq", config, stored("a.q"))
    assert [(e.pointer, e.matches, e.unused) for e in found.entries] == [
        ("/modules_in_block_to_quantize/0/0", ("a.q.weight",), Severity.NOTE),
        ("/modules_in_block_to_quantize/1/0", (), Severity.NOTE),
    ]
    both = config | {"dynamic": {"+:a": {"bits": 8}}}
    found = component("gptq", both, stored("a.q", "a.k"))
    assert [(w.name, w.scheme.bits) for w in found.weights] == [("a.q.weight", 8)]
    assert [entry.pointer for entry in found.entries] == ["/dynamic/+:a"]


def test_marlin_s_own_names() -> None:
    index = index_of(
        {
            "a.B": ("I32", (16, 512)),
            "a.s": ("F16", (2, 256)),
            "a.workspace": ("I32", (32,)),
        }
    )
    config = PLAIN | {"group_size": 128, "is_marlin_format": True}
    (weight,) = component("gptq", config, index).weights
    assert weight.names is MARLIN.names
    assert weight.codes == "a.B"
    assert weight.scheme.logical((16, 512)) == (256, 256)
    assert [part.shape for part in weight.parts((256, 256))] == [(16, 512), (2, 256)]
    assert component("gptq", PLAIN, index).weights == ()


def test_words_of_another_size_are_measured() -> None:
    made = scheme({"pack_dtype": "int16"})
    assert isinstance(made, Opaque)
    assert made.parts((64, 128)) == (
        ("codes", ("I16",), (32, 64)),
        ("scales", FLOAT, (2, 64)),
        ("zeros", ("I16",), (2, 16)),
        ("g_idx", ("I32",), (128,)),
    )


def test_a_head_that_is_promised_and_plain_is_promised_all_the_same() -> None:
    index = stored("a", dense=("lm_head.weight",))
    config = PLAIN | {"lm_head": True}
    weights = {w.name: w.pointer for w in component("gptq", config, index).weights}
    assert weights == {"a.weight": "", "lm_head.weight": "/lm_head"}
    kept = config | {"dynamic": {"-:lm_head": {}}}
    assert len(component("gptq", kept, index).weights) == 1
    assert len(component("gptq", config, stored("a")).weights) == 1  # it is tied


@pytest.mark.parametrize(
    ("config", "due"), [({}, 1), ({"lm_head": False}, 1), ({"lm_head": True}, 0)]
)
def test_a_head_in_silence(config: Config, due: int) -> None:
    lowered = lower("gptq", PLAIN | config, stored("a", "lm_head"))
    found = of_kind(lowered, DefectKind.CONTRADICTION)
    assert [each.problem.severity for each in found] == [Severity.WARNING] * due
    assert len(lowered.manifest.components[0].weights) == 2


@pytest.mark.parametrize(
    ("config", "kind", "pointer"),
    [
        ({"bits": 9}, DefectKind.IMPOSSIBLE_SCHEME, "/bits"),
        ({"bits": 0}, DefectKind.IMPOSSIBLE_SCHEME, "/bits"),
        ({"bits": None, "w_bit": 1}, DefectKind.IMPOSSIBLE_SCHEME, "/w_bit"),
        (
            {"dynamic": {"+:a": {"bits": 16}}},
            DefectKind.IMPOSSIBLE_SCHEME,
            "/dynamic/+:a/bits",
        ),
        ({"wbits": 8}, DefectKind.CONTRADICTION, "/wbits"),
        ({"q_group_size": 128}, DefectKind.CONTRADICTION, "/q_group_size"),
        ({"method": "awq"}, DefectKind.CONTRADICTION, "/method"),
        (
            {"format": "gptq", "checkpoint_format": "gptq_v2"},
            DefectKind.CONTRADICTION,
            "/format",
        ),
        ({"format": "gptq_v9"}, DefectKind.INVALID_VALUE, "/format"),
        ({"pack_dtype": "uint32"}, DefectKind.INVALID_VALUE, "/pack_dtype"),
        ({"group_sizes": 64}, DefectKind.UNKNOWN_KEY, "/group_sizes"),
    ],
)
def test_defects(config: Config, kind: DefectKind, pointer: str) -> None:
    lowered = lower("gptq", PLAIN | config, stored("b"))
    assert [d.kind for d in lowered.defects] == [kind]
    assert lowered.defects[0].problem.at[0].pointer == pointer


@pytest.mark.parametrize(
    "config",
    [
        {  # AutoGPTQ
            "bits": 4,
            "group_size": 128,
            "damp_percent": 0.01,
            "desc_act": False,
            "static_groups": False,
            "sym": True,
            "true_sequential": True,
            "model_name_or_path": None,
            "model_file_base_name": "model",
        },
        {  # optimum
            "bits": 4,
            "dataset": "c4",
            "group_size": 128,
            "damp_percent": 0.1,
            "desc_act": False,
            "sym": True,
            "true_sequential": True,
            "use_cuda_fp16": False,
            "model_seqlen": 2048,
            "block_name_to_quantize": "model.layers",
            "module_name_preceding_first_block": ["model.embed_tokens"],
            "modules_in_block_to_quantize": None,
            "batch_size": 1,
            "pad_token_id": None,
            "disable_exllama": False,
            "exllama_config": {"version": 1},
            "max_input_length": None,
            "cache_block_outputs": True,
            "tokenizer": None,
            "quant_method": "gptq",
        },
        {  # GPTQModel
            "bits": 4,
            "dynamic": {"-:.*gate$": {}, "+:.*down.*": {"bits": 8, "mse": 2.4}},
            "group_size": 128,
            "desc_act": False,
            "lm_head": False,
            "method": "gptq",
            "quant_method": "gptq",
            "format": "gptq",
            "checkpoint_format": "gptq",
            "pack_dtype": "int32",
            "rotation": None,
            "sym": True,
            "meta": {"quantizer": ["gptqmodel:7.7.0"], "damp_percent": 0.05},
        },
    ],
)
def test_what_writers_write_is_known(config: Config) -> None:
    assert dialect_named("gptq").locate(config) == ((),)
    lowered = lower("gptq", config, stored("a"))
    assert lowered.defects == ()
    (weight,) = lowered.manifest.components[0].weights
    assert weight.scheme == qweight.gptq(4, 128, plus=1, symmetric=True)


def test_what_is_kept_may_have_any_bits() -> None:
    assert lower("gptq", PLAIN | {"dynamic": {"-:a": {"bits": 16}}}).defects == ()


@pytest.mark.parametrize(
    "config",
    [
        {"group_size": 0},
        {"group_size": -2},
        {"bits": "4"},
        {"dynamic": {"+:a": {"group_size": 0}}},
        {"dynamic": {"+:a": 8}},
    ],
)
def test_invalid_documents(config: Config) -> None:
    with pytest.raises(InvalidConfigError):
        lower("gptq", PLAIN | config)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"quant_method": "gptq"}, ((),)),
        ({"method": "GPTQ", "bits": 4}, ((),)),
        ({"bits": 4, "damp_percent": 0.1}, ((),)),
        ({"wbits": 4, "desc_act": False}, ((),)),
        ({"wbits": 4}, ()),
        ({"quant_method": "awq", "bits": 4, "desc_act": False}, ()),
        ({"method": "awq", "bits": 4, "desc_act": False}, ()),
        (
            {"model_type": "x", "quantization_config": {"quant_method": "bitblas"}},
            (("quantization_config",),),
        ),
        ({"model_type": "x", "bits": 4, "desc_act": True}, ()),
    ],
)
def test_where_documents_lie(raw: Config, found: tuple[tuple[str, ...], ...]) -> None:
    assert dialect_named("gptq").locate(raw) == found


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"sym": False, "checkpoint_format": "gptq_v2", "desc_act": True},
        {"bits": 3, "checkpoint_format": "gptq_p"},
        {"bits": 6},
        {"dynamic": {"-:b": {}, "+:a": {"bits": 5}, "+:c": {"bits": 3}}},
        {"checkpoint_format": "gptq_p", "sym": False},
        {"group_size": -1, "lm_head": True},
        {"dynamic": {"-:b": {}, "+:a": {"bits": 8, "group_size": 32}}},
    ],
)
def test_emitted_is_lowered_to_the_same(config: Config) -> None:
    index = stored("a", "c", "d", dense=("b.weight",))
    first = lower("gptq", PLAIN | config, index)
    again = lower("gptq", emit_again("gptq", first), index)
    (one,), (two,) = first.manifest.components, again.manifest.components
    assert [(w.name, w.scheme) for w in one.weights] == [
        (w.name, w.scheme) for w in two.weights
    ]
    assert [kept.name for kept in one.kept] == [kept.name for kept in two.kept]


def test_names_are_emitted_whatever_they_hold() -> None:
    index = stored("a.1", "a+1", "a.11", dense=("a.2.weight",))
    config = PLAIN | {"dynamic": {"-:a\\.2": {}, "+:a\\.1$": {"bits": 8}}}
    document = emit_again("gptq", lower("gptq", config, index))
    assert document["dynamic"] == {
        "-:^a\\.2$": {},
        "+:^a\\.1$": {"bits": 8, "group_size": 64, "desc_act": False, "sym": True},
    }


@pytest.mark.parametrize(
    "schemes",
    [
        (Affine(4, 64, FLOAT, "u32-lsb"),),
        (qweight.awq_gemm(4, 64),),
        (qweight.gptq(4, 64, plus=1), qweight.gptq(4, 64, plus=0)),
        (qweight.gptq(5, 64, plus=1),),  # AutoRound's
        (),
    ],
)
def test_what_cannot_be_emitted(schemes: tuple[Scheme, ...]) -> None:
    weights = tuple(Weight(f"{n}.weight", s, "") for n, s in enumerate(schemes))
    with pytest.raises(EmitError):
        dialect_named("gptq").emit(
            Manifest("made", components=(Component("", weights),))
        )


def test_emitting_several_models_is_refused() -> None:
    with pytest.raises(EmitError, match="one model"):
        dialect_named("gptq").emit(Manifest("made"))
