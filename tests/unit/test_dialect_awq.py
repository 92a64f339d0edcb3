"""`awq`: keys and their old names, layouts, lists of names, and what is emitted."""

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
from qmanifest.schemes import Opaque, qweight

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
PLAIN: Final[Config] = {"quant_method": "awq", "bits": 4, "group_size": 64}


def stored(*modules: str, dense: tuple[str, ...] = ()) -> TensorIndex:
    """Index AWQ's tensors of 64 x 128 weights, and plain matrices."""
    tensors: dict[str, tuple[str, Shape]] = {}
    for module in modules:
        tensors[f"{module}.qweight"] = ("I32", (128, 8))
        tensors[f"{module}.qzeros"] = ("I32", (2, 8))
        tensors[f"{module}.scales"] = ("F16", (2, 64))
    return index_of(tensors | dict.fromkeys(dense, ("F16", (64, 128))))


def test_what_is_stored_is_quantized() -> None:
    found = component("awq", PLAIN, stored("a", "b.c", dense=("norm.weight",)))
    assert found.weights == tuple(
        Weight(name, qweight.awq_gemm(4, 64), "", names=GPTQ.names)
        for name in ("a.weight", "b.c.weight")
    )
    assert found.every_linear


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, qweight.awq_gemm(4, 64)),
        ({"version": "GEMM"}, qweight.awq_gemm(4, 64)),
        ({"version": "exllama"}, qweight.awq_gemm(4, 64)),
        ({"version": "GEMV"}, qweight.awq_gemv(4, 64)),
        ({"format": "gemv_fast"}, qweight.awq_gemv_fast(4, 64)),
        ({"checkpoint_format": "gemv"}, qweight.awq_gemv(4, 64)),
        ({"backend": "llm-awq", "version": "gemm"}, qweight.awq_gemv_fast(4, 64)),
        ({"backend": "autoawq", "version": "gemv"}, qweight.awq_gemv(4, 64)),
        ({"version": "marlin"}, qweight.marlin(4, 64)),
        ({"group_size": -1}, qweight.awq_gemm(4, 0)),
        ({"bits": 0}, qweight.undecoded("gemm", 0, 64)),
        ({"version": "bitblas"}, qweight.undecoded("bitblas", 4, 64)),
    ],
)
def test_numbers_and_layouts(config: Config, expected: Scheme) -> None:
    lowered = lower("awq", PLAIN | config, stored("a"))
    (weight,) = lowered.manifest.components[0].weights
    assert weight.scheme == expected


@pytest.mark.parametrize(
    ("config", "group"),
    [
        ({"zero_point": True, "w_bit": 4, "q_group_size": 32, "version": "GEMM"}, 32),
        ({"quant_method": "awq"}, 128),
        ({"method": "awq", "q_group_size": -1}, 0),
    ],
)
def test_old_names_and_defaults(config: Config, group: int) -> None:
    (weight,) = component("awq", config, stored("a")).weights
    assert weight.scheme == qweight.awq_gemm(4, group)


def test_a_list_keeps_by_parts_of_names() -> None:
    config = PLAIN | {"modules_to_not_convert": ["gate", "layers.0.", "lm_head"]}
    index = stored("layers.1.up", dense=("layers.1.gate.weight", "layers.0.up.weight"))
    found = component("awq", config, index)
    assert found.kept == (
        Kept("layers.1.gate.weight", "/modules_to_not_convert/0", FLOAT),
        Kept("layers.0.up.weight", "/modules_to_not_convert/1", FLOAT),
    )
    assert [entry.unused for entry in found.entries] == [
        Severity.NOTE,
        Severity.WARNING,
        Severity.NOTE,
    ]
    assert {entry.reader for entry in found.entries} == {"vllm-awq"}


def test_modules_that_differ() -> None:
    dynamic = {"-:b": {}, "+:a": {"group_size": 32}, "c": {"group_size": -1}}
    index = stored("a", "c", "d", dense=("b.weight",))
    found = component("awq", PLAIN | {"dynamic": dynamic}, index)
    assert {w.name: (w.scheme.group_size, w.pointer) for w in found.weights} == {
        "a.weight": (32, "/dynamic/+:a"),
        "c.weight": (0, "/dynamic/c"),
        "d.weight": (64, ""),
    }
    assert [kept.name for kept in found.kept] == ["b.weight"]


def test_marlin_is_measured() -> None:
    index = index_of({"a.qweight": ("I32", (16, 512)), "a.scales": ("F16", (1, 256))})
    config = PLAIN | {"group_size": -1, "version": "marlin"}
    (weight,) = component("awq", config, index).weights
    assert isinstance(weight.scheme, Opaque)
    assert weight.scheme.logical((16, 512)) == (256, 256)
    assert [part.shape for part in weight.parts((256, 256))] == [(16, 512), (1, 256)]


@pytest.mark.parametrize(
    ("config", "kind", "pointer"),
    [
        ({"bits": 8}, DefectKind.IMPOSSIBLE_SCHEME, "/bits"),
        ({"bits": None, "w_bit": 3}, DefectKind.IMPOSSIBLE_SCHEME, "/w_bit"),
        (
            {"dynamic": {"+:a": {"bits": 8}}},
            DefectKind.IMPOSSIBLE_SCHEME,
            "/dynamic/+:a/bits",
        ),
        ({"w_bit": 8}, DefectKind.CONTRADICTION, "/w_bit"),
        ({"method": "gptq"}, DefectKind.CONTRADICTION, "/method"),
        (
            {"version": "gemm", "checkpoint_format": "gemv"},
            DefectKind.CONTRADICTION,
            "/checkpoint_format",
        ),
        ({"version": "gemm2"}, DefectKind.INVALID_VALUE, "/version"),
        ({"format": "bitblas"}, DefectKind.INVALID_VALUE, "/format"),
        ({"modules_to_not_converted": []}, DefectKind.UNKNOWN_KEY, None),
    ],
)
def test_defects(config: Config, kind: DefectKind, pointer: str | None) -> None:
    lowered = lower("awq", PLAIN | config, stored("b"))
    assert [d.kind for d in lowered.defects] == [kind]
    (key,) = config if pointer is None else (pointer[1:],)
    assert lowered.defects[0].problem.at[0].pointer == f"/{key}"


@pytest.mark.parametrize(
    "config",
    [{"group_size": 0}, {"modules_to_not_convert": "lm_head"}, {"zero_point": "yes"}],
)
def test_invalid_documents(config: Config) -> None:
    with pytest.raises(InvalidConfigError):
        lower("awq", PLAIN | config)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"quant_method": "AWQ"}, ((),)),
        ({"method": "awq"}, ((),)),
        ({"zero_point": True, "w_bit": 4}, ((),)),
        ({"zero_point": True}, ()),
        ({"quant_method": "gptq", "zero_point": True, "bits": 4}, ()),
        (
            {"hidden_size": 8, "quantization_config": {"quant_method": "awq"}},
            (("quantization_config",),),
        ),
    ],
)
def test_where_documents_lie(raw: Config, found: tuple[tuple[str, ...], ...]) -> None:
    assert dialect_named("awq").locate(raw) == found


@pytest.mark.parametrize("version", ["gemm", "gemv", "gemv_fast", "marlin"])
def test_emitted_is_lowered_to_the_same(version: str) -> None:
    config = PLAIN | {"version": version, "modules_to_not_convert": ["b.q"]}
    index = stored("a", "b.k", dense=("b.q.weight",))
    first = lower("awq", config, index)
    document = emit_again("awq", first)
    assert document["version"] == version
    again = lower("awq", document, index)
    (one,), (two,) = first.manifest.components, again.manifest.components
    assert one.weights == two.weights
    assert one.kept == two.kept


def test_a_name_that_is_a_part_of_another_has_no_words() -> None:
    weight = Weight("mlp.gate_proj.weight", qweight.awq_gemm(4, 64), "")
    kept = Kept("mlp.gate.weight", "", FLOAT)
    manifest = Manifest("made", components=(Component("", (weight,), (kept,)),))
    with pytest.raises(EmitError, match=r"a part of 'mlp.gate_proj.weight'"):
        dialect_named("awq").emit(manifest)


@pytest.mark.parametrize(
    "schemes",
    [
        (qweight.gptq(4, 64, plus=1),),
        (qweight.awq_gemm(4, 64), qweight.awq_gemm(4, 32)),
        (),
    ],
)
def test_what_cannot_be_emitted(schemes: tuple[Scheme, ...]) -> None:
    weights = tuple(Weight(f"{n}.weight", s, "") for n, s in enumerate(schemes))
    manifest = Manifest("made", components=(Component("", weights),))
    with pytest.raises(EmitError):
        dialect_named("awq").emit(manifest)


def test_emitting_several_models_is_refused() -> None:
    with pytest.raises(EmitError, match="one model"):
        dialect_named("awq").emit(Manifest("made"))
