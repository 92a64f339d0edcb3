"""`mlx`: the block of `config.json`, its overrides, and what the tensors say."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.lowering import component, dense, emit_again, index_of, lower, packed

from qmanifest.dialects import dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse
from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

Config = dict[str, Any]
BLOCK: Final[Config] = {"group_size": 64, "bits": 4}
NVFP4: Final = Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none")


def single(*weights: Weight, kept: tuple[str, ...] = ()) -> Manifest:
    names = tuple(Kept(name, "", FLOAT) for name in kept)
    return Manifest("made", components=(Component("", weights, names),))


def emit(manifest: Manifest) -> Config:
    document: Config = dialect_named("mlx").emit(manifest).to_json()
    return document


def test_what_is_stored_packed_is_quantized() -> None:
    index = packed("a", "b.c", kept=["norm.weight"])
    found = component("mlx", BLOCK, index)
    assert found.weights == tuple(
        Weight(name, Affine(4, 64, FLOAT, "u32-lsb"), "")
        for name in ("a.weight", "b.c.weight")
    )
    assert found.kept == ()
    assert not found.exhaustive


def test_overrides() -> None:
    block = BLOCK | {
        "a": {"bits": 8, "group_size": 32},
        "b": {"bits": 8},
        "c": {},
        "d": True,
        "e": False,
        "f": {"mode": "mxfp8"},
    }
    index = packed(*"abcdfg", kept=["e.weight"])
    found = component("mlx", block, index)
    assert {w.name: (w.scheme, w.pointer) for w in found.weights} == {
        "a.weight": (Affine(8, 32, FLOAT, "u32-lsb"), "/a"),
        "b.weight": (Affine(8, 64, FLOAT, "u32-lsb"), "/b"),
        "c.weight": (Affine(4, 64, FLOAT, "u32-lsb"), "/c"),
        "d.weight": (Affine(4, 64, FLOAT, "u32-lsb"), "/d"),
        "f.weight": (Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"), "/f"),
        "g.weight": (Affine(4, 64, FLOAT, "u32-lsb"), ""),
    }
    assert found.kept == (Kept("e.weight", "/e", FLOAT),)


def test_what_arguments_leave_out_is_the_default_of_mlx_not_the_blocks() -> None:
    block = {"group_size": 32, "bits": 8, "a": {"bits": 2}, "b": True}
    found = component("mlx", block, packed("a", "b"))
    assert [(w.scheme.bits, w.scheme.group_size) for w in found.weights] == [
        (2, 64),
        (8, 32),
    ]


def test_without_an_index_only_overrides_are_known() -> None:
    block = BLOCK | {"a": {"bits": 8}, "b": True, "c": False}
    found = component("mlx", block)
    assert [weight.name for weight in found.weights] == ["a.weight", "b.weight"]
    assert [each.name for each in found.kept] == ["c.weight"]


def test_overrides_are_lines_with_a_severity() -> None:
    found = component("mlx", BLOCK | {"a": {}, "b": True, "c": False}, packed("a"))
    assert [
        (e.pattern.text, e.purpose, e.unused, e.appended) for e in found.entries
    ] == [
        ("a", "quantize", Severity.WARNING, ".weight"),
        ("b", "quantize", Severity.NOTE, ".weight"),
        ("c", "keep", Severity.NOTE, ".weight"),
    ]
    assert [entry.matches for entry in found.entries] == [("a.weight",), (), ()]


def test_an_override_of_a_16bit_tensor_is_a_promise() -> None:
    found = component("mlx", BLOCK | {"a": {"bits": 8}, "x": True}, dense("a.weight"))
    assert [weight.name for weight in found.weights] == ["a.weight"]


def test_kept_modules_stay_in_the_order_of_the_config() -> None:
    names = [f"m{number}" for number in range(50)]
    found = component("mlx", BLOCK | dict.fromkeys(names, False))
    assert [each.name for each in found.kept] == [f"{name}.weight" for name in names]


@pytest.mark.parametrize("says", [True, False, None])
@pytest.mark.parametrize("stored", [True, False])
def test_global_scales(
    says: bool | None,  # noqa: FBT001 - a parameter of the test
    stored: bool,  # noqa: FBT001 - likewise
) -> None:
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {
        "a.weight": ("U32", (2, 4, 8)),
        "a.scales": ("U8", (2, 4, 4)),
    }
    if stored:
        tensors["a.global_scale"] = ("F32", (2,))
    arguments: Config = {"mode": "nvfp4"}
    if says is not None:
        arguments["global_scale"] = says
    lowered = lower("mlx", BLOCK | {"a": arguments}, index_of(tensors))
    ((_, weight),) = lowered.manifest.weights()
    assert isinstance(weight.scheme, Microscaling)
    assert (weight.scheme.global_scale == "amax") == (stored or bool(says))
    written = emit_again("mlx", lowered)
    if stored or says:
        assert written["a"]["global_scale"] is True
    again = lower("mlx", written, index_of(tensors))
    assert next(again.manifest.weights())[1].scheme == weight.scheme


def test_global_scale_means_nothing_to_affine_modules() -> None:
    found = component("mlx", BLOCK | {"a": {"global_scale": True}})
    assert found.weights[0].scheme == Affine(4, 64, FLOAT, "u32-lsb")


@pytest.mark.parametrize(
    ("block", "pointer"),
    [
        ({"bits": 7}, "/bits"),
        ({"group_size": 16}, "/group_size"),
        ({"mode": "mxfp4"}, "/group_size"),
        ({"mode": "mxfp8"}, "/bits"),
        ({"a": {"bits": 16}}, "/a/bits"),
        ({"a": {"mode": "nvfp4", "group_size": 32}}, "/a/group_size"),
    ],
)
def test_impossible_schemes(block: Config, pointer: str) -> None:
    (defect,) = lower("mlx", BLOCK | {"b": True} | block).defects
    assert defect.kind is DefectKind.IMPOSSIBLE_SCHEME
    assert defect.problem.at[0].pointer == pointer
    assert defect.problem.at[0].tensor == ("a.weight" if "a" in block else None)


def test_twin_blocks_are_located() -> None:
    dialect = dialect_named("mlx")
    twin = {"quantization": BLOCK, "quantization_config": BLOCK, "hidden_size": 8}
    assert dialect.locate(twin) == (("quantization",), ("quantization_config",))
    foreign = {"quantization_config": BLOCK | {"quant_method": "gptq"}}
    assert dialect.locate(foreign) == ()
    document = parse(dialect, twin, Place("config.json", ("quantization",)))
    assert dialect.wrap(document.to_json()) == {
        "quantization": BLOCK,
        "quantization_config": BLOCK,
    }


@pytest.mark.parametrize(
    "module", ["overrides", "numbers", "vocabulary", "to_json", ""]
)
def test_modules_may_be_called_like_attributes(module: str) -> None:
    found = component("mlx", BLOCK | {module: {"bits": 8}})
    assert [(w.name, w.scheme.bits) for w in found.weights] == [(f"{module}.weight", 8)]


def test_emit_writes_defaults_and_what_differs() -> None:
    q4, q8 = Affine(4, 64, FLOAT16, "u32-lsb"), Affine(8, 32, FLOAT16, "u32-lsb")
    weights = [Weight(f"l.{n}.weight", q4, "") for n in range(3)]
    manifest = single(
        *weights, Weight("head.weight", q8, ""), kept=("gate.weight", "norm.bias")
    )
    assert emit(manifest) == {
        "group_size": 64,
        "bits": 4,
        "mode": "affine",
        "head": {"group_size": 32, "bits": 8, "mode": "affine"},
        "gate": False,
    }
    assert emit(single()) == {"group_size": 64, "bits": 4, "mode": "affine"}


def test_emit_keeps_what_only_an_override_names() -> None:
    written = emit_again("mlx", lower("mlx", BLOCK | {"a": True, "b": {"bits": 4}}))
    assert written == BLOCK | {"mode": "affine", "a": True, "b": True}


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (Manifest("x"), "one model"),
        (
            single(Weight("a", Affine(4, 64, FLOAT, "u8-nibbles"), "")),
            "no words for 'a'",
        ),
        (
            single(Weight("a", ZeroPoint(4, 64, FLOAT, ("U8",), "u32-lsb"), "")),
            "no words for 'a'",
        ),
        (single(Weight("bits.weight", NVFP4, "")), None),
        (
            single(
                Weight("mode.weight", Affine(4, 64, FLOAT, "u32-lsb"), ""),
                kept=("bits.weight",),
            ),
            "'bits'",
        ),
        (single(kept=("$schema.weight",)), "'\\$schema'"),
    ],
)
def test_what_has_no_words(manifest: Manifest, said: str | None) -> None:
    if said is None:
        assert emit(manifest)["bits"] == 4
        return
    with pytest.raises(EmitError, match=said):
        emit(manifest)
