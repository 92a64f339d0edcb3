"""`q4-lists`: one list per component, protected substrings, prose."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.lowering import (
    dense,
    emit_again,
    index_of,
    lower,
    lower_each,
    of_kind,
    packed,
)

from qmanifest.dialects import dialect_named
from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

Config = dict[str, Any]
SCHEME: Final = Affine(4, 64, FLOAT16, "u32-lsb")


def config(
    protected: list[str], lists: dict[str, list[str]], **others: object
) -> Config:
    head = {"quant": "q4", "group": 64, "scheme": "prose", "protected_fp16": protected}
    return head | lists | others


def emit(manifest: Manifest) -> Config:
    document: Config = dialect_named("q4-lists").emit(manifest).to_json()
    return document


def test_every_list_is_a_component() -> None:
    lowered = lower("q4-lists", config([], {"emb_q4": ["a"], "rr_x_q4": ["a", "b"]}))
    emb, other = lowered.manifest.components
    assert (emb.name, emb.pointer) == ("emb", "/emb_q4")
    assert emb.weights == (Weight("a", SCHEME, "/emb_q4/0"),)
    assert (other.name, other.pointer) == ("rr_x", "/rr_x_q4")
    assert [weight.pointer for weight in other.weights] == ["/rr_x_q4/0", "/rr_x_q4/1"]
    assert lowered.manifest.dialect == "q4-lists"
    assert emb.exhaustive


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_quant_is_the_width_of_all(bits: int) -> None:
    lowered = lower("q4-lists", config([], {f"emb_q{bits}": ["a"]}, quant=f"q{bits}"))
    assert lowered.defects == ()
    ((_, weight),) = lowered.manifest.weights()
    assert weight.scheme == Affine(bits, 64, FLOAT16, "u32-lsb")


def test_a_list_of_another_width_contradicts_quant() -> None:
    lowered = lower("q4-lists", config([], {"emb_q8": ["a"], "rr_q4": ["b"]}))
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.CONTRADICTION
    assert defect.problem.at[0].pointer == "/emb_q8"
    assert (defect.problem.expected, defect.problem.actual) == ("emb_q4", "emb_q8")
    assert {w.scheme for _, w in lowered.manifest.weights()} == {SCHEME}


@pytest.mark.parametrize("group", [16, 48, 256])
def test_impossible_group(group: int) -> None:
    (defect,) = lower("q4-lists", config([], {"emb_q4": []}, group=group)).defects
    assert defect.kind is DefectKind.IMPOSSIBLE_SCHEME
    assert defect.problem.at[0].pointer == "/group"
    assert f"has group 32, 64 or 128; found group {group}" in defect.problem.message


def test_protected_substrings_keep_what_holds_them() -> None:
    index = packed("a", kept=["x.LayerNorm.weight", "pooler.dense.weight", "y.weight"])
    lowered = lower(
        "q4-lists", config(["Norm", "pool"], {"emb_q4": ["a.weight"]}), index
    )
    assert lowered.defects == ()
    (component,) = lowered.manifest.components
    assert component.kept == (
        Kept("x.LayerNorm.weight", "/protected_fp16/0", ("F16",)),
        Kept("pooler.dense.weight", "/protected_fp16/1", ("F16",)),
    )


def test_protected_lines_serve_every_component() -> None:
    given = config(["norm", "none"], {"emb_q4": [], "rr_q4": []})
    indexes = {"emb": dense("a.norm"), "rr": dense("b")}
    emb, rr = lower_each("q4-lists", given, indexes).manifest.components
    assert [entry.matches for entry in emb.entries] == [("a.norm",), ()]
    assert [entry.matches for entry in rr.entries] == [(), ()]
    assert [entry.unused for entry in emb.entries] == [None, Severity.NOTE]
    assert [entry.unused for entry in rr.entries] == [None, Severity.NOTE]


def test_a_component_that_was_not_found_is_lowered_as_far_as_it_goes() -> None:
    given = config([], {"emb_q4": ["a.*"], "rr_q4": ["b.{0,1}", "c.*"]})
    lowered = lower_each("q4-lists", given, {"emb": dense("a.b")})
    emb, rr = lowered.manifest.components
    assert [weight.name for weight in emb.weights] == ["a.b"]
    assert [weight.name for weight in rr.weights] == ["b.0", "b.1"]


def test_lists_may_hold_patterns_and_exact_beats_them() -> None:
    given = config([], {"emb_q4": ["l.*.weight", "re:m\\..*", "l.1.weight"]})
    index = dense("l.0.weight", "l.1.weight", "m.weight", "n.weight")
    (component,) = lower("q4-lists", given, index).manifest.components
    assert {weight.name: weight.pointer for weight in component.weights} == {
        "l.0.weight": "/emb_q4/0",
        "l.1.weight": "/emb_q4/2",
        "m.weight": "/emb_q4/1",
    }
    assert [(e.unused, len(e.matches)) for e in component.entries] == [(None, 2)] + [
        (None, 1)
    ] * 2
    (alone,) = lower("q4-lists", given, dense("x")).manifest.components
    assert [entry.unused for entry in alone.entries] == [Severity.ERROR] * 2 + [None]


@pytest.mark.parametrize("protected", ["b.we", "a.b.weight", "*.weight", "re:.*b.*"])
@pytest.mark.parametrize("stored", [True, False])
def test_listed_and_protected_is_a_contradiction(
    protected: str,
    stored: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    index = packed("a.b") if stored else None
    given = config(["x", protected], {"emb_q4": ["a.b.weight"]})
    (defect,) = of_kind(lower("q4-lists", given, index), DefectKind.CONTRADICTION)
    assert [place.pointer for place in defect.problem.at] == [
        "/protected_fp16/1",
        "/emb_q4/0",
    ]
    assert repr(protected) in defect.problem.message
    assert defect.problem.hint == "remove one of the two entries"


@pytest.mark.parametrize(
    ("text", "severity", "said"),
    [
        ("*.norm", Severity.NOTE, "read as a pattern of whole names"),
        ("re:.*norm", Severity.NOTE, "read as a pattern of whole names"),
        ("{a,b}", Severity.NOTE, "read as a pattern of whole names"),
        ("norm$", Severity.WARNING, "read as a plain substring"),
        ("^embed", Severity.WARNING, "read as a plain substring"),
        ("a\\.b", Severity.WARNING, "read as a plain substring"),
        ("a|b", Severity.WARNING, "read as a plain substring"),
        ("a.b_c-d", None, ""),
    ],
)
def test_protected_entries_in_another_syntax(
    text: str, severity: Severity | None, said: str
) -> None:
    lowered = lower("q4-lists", config(["x", text], {"emb_q4": []}))
    if severity is None:
        assert lowered.defects == ()
        return
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.FOREIGN_SYNTAX
    assert defect.problem.severity is severity
    assert defect.problem.at[0].pointer == "/protected_fp16/1"
    assert defect.problem.message.endswith(f"{text!r} is {said}")


def test_a_bad_protected_pattern_is_reported_once_for_all_components() -> None:
    lowered = lower("q4-lists", config(["re:["], {"emb_q4": [], "rr_q4": []}))
    (defect,) = of_kind(lowered, DefectKind.BAD_PATTERN)
    assert defect.problem.at[0].pointer == "/protected_fp16/0"


@pytest.mark.parametrize(
    ("prose", "named"),
    [
        ("group-wise affine RTN (4-bit), fp16 compute", []),
        ("8-bit", [8]),
        ("3 bits, then 8bit, then 3-Bit", [3, 8]),
        ("4-bit codes, 16-bit compute, 32-bit sums, 1.5-bit average", []),
        ("int8bits", [8]),
        ("a bit, 8 bitter", []),
    ],
)
def test_prose_that_names_another_width(prose: str, named: list[int]) -> None:
    found = lower("q4-lists", config([], {"emb_q4": []}, scheme=prose)).defects
    assert [each.problem.actual for each in found] == named
    assert all(each.kind is DefectKind.LABEL for each in found)
    assert all(each.problem.severity is Severity.NOTE for each in found)
    assert all(each.problem.at[0].pointer == "/scheme" for each in found)


@pytest.mark.parametrize("word", ["bf16", "BF16", "bfloat16"])
def test_prose_that_names_another_precision(word: str) -> None:
    given = config([], {"emb_q4": []}, scheme=f"4-bit, {word} compute")
    (defect,) = lower("q4-lists", given).defects
    assert defect.kind is DefectKind.LABEL
    assert "bf16" in defect.problem.message


def test_hostile_prose_is_read_in_linear_time() -> None:
    given = config([], {"emb_q4": []}, scheme="1" * 1_000_000 + " bf" * 100_000)
    assert lower("q4-lists", given).defects == ()  # quadratic would take hours


@pytest.mark.parametrize(
    ("zeros", "scheme"),
    [
        (None, Affine(4, 64, FLOAT16, "u8-nibbles")),
        ("U8", ZeroPoint(4, 64, FLOAT16, ("U8",), "u8-nibbles")),
        ("BF16", ZeroPoint(4, 64, FLOAT16, FLOAT, "u8-nibbles")),
    ],
)
def test_nibbles(zeros: str | None, scheme: Affine | ZeroPoint) -> None:
    other = ("a.zeros", (zeros, (4, 1))) if zeros else ("a.biases", ("F16", (4, 1)))
    index = index_of(
        {"a.weight": ("U8", (4, 32)), "a.scales": ("F16", (4, 1)), other[0]: other[1]}
    )
    lowered = lower("q4-lists", config([], {"emb_q4": ["a.weight"]}), index)
    ((_, weight),) = lowered.manifest.weights()
    assert weight.scheme == scheme
    assert emit_again("q4-lists", lowered)["emb_q4"] == ["a.weight"]


def two(*kept: str, scheme: Affine | Microscaling | ZeroPoint = SCHEME) -> Manifest:
    names = tuple(Kept(name, "", FLOAT16) for name in kept)
    return Manifest(
        "made",
        components=(
            Component("emb", (Weight("a[1].weight", scheme, ""),), names),
            Component("rr", (Weight("b.weight", scheme, ""),), names),
        ),
    )


def test_emit() -> None:
    assert emit(two("norm.weight")) == {
        "quant": "q4",
        "group": 64,
        "scheme": "group-wise affine, 4-bit, fp16 compute",
        "protected_fp16": ["norm.weight"],
        "emb_q4": ["re:a\\[1\\]\\.weight"],
        "rr_q4": ["b.weight"],
    }


def test_emitted_prose_and_lists_are_as_they_should_be() -> None:
    for bits in (2, 3, 4, 5, 6, 8):
        assert (
            lower(
                "q4-lists", emit(two(scheme=Affine(bits, 32, FLOAT16, "u32-lsb")))
            ).defects
            == ()
        )


def test_emit_writes_protected_lines_and_not_what_they_match() -> None:
    given = config(["norm", "*.x"], {"emb_q4": ["a.weight"]})
    lowered = lower("q4-lists", given, packed("a", kept=["b.norm", "c.x"]))
    assert emit_again("q4-lists", lowered)["protected_fp16"] == ["norm", "*.x"]


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (Manifest("x"), "has 0"),
        (
            two(scheme=Affine(7, 64, FLOAT16, "u32-lsb")),
            "cannot say /emb_q7: it is no key here",
        ),
        (
            two(scheme=Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none")),
            "affine schemes",
        ),
        (two(scheme=ZeroPoint(4, 64, FLOAT16, ("U8",), "u32-lsb")), "affine schemes"),
        (
            Manifest("x", components=(Component("", (Weight("a", SCHEME, ""),)),)),
            "named components only",
        ),
        (
            Manifest(
                "x",
                components=(
                    Component("e", (Weight("a", SCHEME, ""),)),
                    Component(
                        "f", (Weight("a", Affine(8, 64, FLOAT16, "u32-lsb"), ""),)
                    ),
                ),
            ),
            "the manifest has 2",
        ),
    ],
)
def test_what_has_no_words(manifest: Manifest, said: str) -> None:
    with pytest.raises(EmitError, match=said):
        emit(manifest)
