"""`tensor-map`: entries and the keep list, lowered, judged and emitted."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.lowering import (
    component,
    dense,
    emit_again,
    index_of,
    lower,
    of_kind,
    packed,
)

from qmanifest.dialects import dialect_named
from qmanifest.dialects.base import MOST
from qmanifest.dtypes import FLOAT16
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

Config = dict[str, Any]
Q4: Final = Affine(4, 64, FLOAT16, "u32-lsb")


def config(tensors: Config, kept: list[str] | None = None, **others: object) -> Config:
    return {
        "bits": 4,
        "group_size": 64,
        "kept_16bit": kept or [],
        "tensors": tensors,
        **others,
    }


def emit(manifest: Manifest) -> Config:
    document: Config = dialect_named("tensor-map").emit(manifest).to_json()
    return document


def single(*weights: Weight, kept: tuple[str, ...] = ()) -> Manifest:
    names = tuple(Kept(name, "", FLOAT16) for name in kept)
    return Manifest("made", components=(Component("", weights, names),))


def test_entries_say_what_the_top_level_does_not() -> None:
    found = component(
        "tensor-map",
        config(
            {
                "a.weight": {},
                "b.weight": {"bits": 8},
                "c.weight": {"group_size": 32, "shape": [2, 3, 32]},
                "d.weight": {"mode": "mxfp8", "bits": 8, "group_size": 32},
            }
        ),
    )
    assert found.weights == (
        Weight("a.weight", Q4, "/tensors/a.weight"),
        Weight("b.weight", Affine(8, 64, FLOAT16, "u32-lsb"), "/tensors/b.weight"),
        Weight(
            "c.weight",
            Affine(4, 32, FLOAT16, "u32-lsb"),
            "/tensors/c.weight",
            (2, 3, 32),
        ),
        Weight(
            "d.weight",
            Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
            "/tensors/d.weight",
        ),
    )


@pytest.mark.parametrize(
    ("mode", "bits", "group_size", "scheme"),
    [
        ("mxfp4", 4, 32, Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none")),
        ("mxfp8", 8, 32, Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none")),
        ("nvfp4", 4, 16, Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none")),
    ],
)
def test_modes_of_small_floats(
    mode: str, bits: int, group_size: int, scheme: Microscaling
) -> None:
    given = config({"a.weight": {}}, mode=mode, bits=bits, group_size=group_size)
    (weight,) = component("tensor-map", given).weights
    assert weight.scheme == scheme
    (wrong,) = lower("tensor-map", given | {"bits": 6}).defects
    assert wrong.kind is DefectKind.IMPOSSIBLE_SCHEME
    assert f"mode {mode} has bits {bits} and group_size {group_size}" in (
        wrong.problem.message
    )
    assert wrong.problem.at[0].pointer == "/bits"


@pytest.mark.parametrize("bits", [1, 7, 9, 16])
def test_impossible_bits(bits: int) -> None:
    lowered = lower("tensor-map", config({"a.weight": {"bits": bits}, "b.weight": {}}))
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.IMPOSSIBLE_SCHEME
    assert defect.problem.at[0].pointer == "/tensors/a.weight/bits"
    assert defect.problem.at[0].tensor == "a.weight"
    assert f"found bits {bits}" in defect.problem.message


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        ({}, "/group_size"),
        ({"group_size": 96}, "/tensors/a.weight/group_size"),
        ({"bits": 8}, "/group_size"),
        ({"mode": "affine"}, "/tensors/a.weight/mode"),
    ],
)
def test_impossible_group_points_at_who_said_it(entry: Config, pointer: str) -> None:
    lowered = lower("tensor-map", config({"a.weight": entry}, group_size=48))
    (defect,) = lowered.defects
    assert defect.problem.at[0].pointer == pointer
    assert "mode affine has group_size 32, 64 or 128" in defect.problem.message


@pytest.mark.parametrize(
    ("width", "hint"),
    [
        (96, "use group_size 32, or keep the tensor 16-bit"),
        (192, None),
        (2050, "keep the tensor 16-bit"),
        (63, "keep the tensor 16-bit"),
        (64, None),
        (65, "keep the tensor 16-bit"),
    ],
)
def test_groups_divide_the_declared_width(width: int, hint: str | None) -> None:
    lowered = lower("tensor-map", config({"a.weight": {"shape": [8, width]}}))
    if hint is None:
        assert lowered.defects == ()
        return
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.GROUP_DIVISION
    assert defect.problem.at[0].pointer == "/tensors/a.weight/shape"
    assert (defect.problem.expected, defect.problem.actual) == (
        "a multiple of 64",
        width,
    )
    assert defect.problem.hint == hint


def test_kept_names_and_patterns_without_an_index() -> None:
    kept = ["a.weight", "b.{0..2}.weight", "c.*", "re:d.+"]
    found = component("tensor-map", config({}, kept))
    assert [each.name for each in found.kept] == [
        *("a.weight", "b.0.weight", "b.1.weight", "b.2.weight"),
    ]
    assert found.kept[1] == Kept("b.0.weight", "/kept_16bit/1", FLOAT16)
    assert [len(entry.matches) for entry in found.entries] == [1, 3, 0, 0]


def test_kept_patterns_match_what_is_stored_and_never_companions() -> None:
    index = packed("a", kept=["b.weight", "c.d.weight"])
    lowered = lower("tensor-map", config({"a.weight": {}}, ["[bc]*"]), index)
    (only,) = lowered.manifest.components
    assert [each.name for each in only.kept] == ["b.weight", "c.d.weight"]
    star = lower("tensor-map", config({}, ["*", "re:.*"]), index).manifest.components[0]
    assert {each.name for each in star.kept} == {"a.weight", "b.weight", "c.d.weight"}
    assert star.entries[0].matches == star.entries[1].matches


def test_severities_of_dead_lines() -> None:
    lines = config({"a.weight": {}, "b.*": {}}, ["c.weight", "d.*"])
    found = component("tensor-map", lines, dense("x"))
    assert [(e.pattern.text, e.purpose, e.unused) for e in found.entries] == [
        ("c.weight", "keep", Severity.ERROR),
        ("d.*", "keep", Severity.WARNING),
        ("a.weight", "quantize", None),
        ("b.*", "quantize", Severity.ERROR),
    ]


def test_exact_beats_pattern_and_the_first_pattern_wins() -> None:
    given = config(
        {
            "l.*.weight": {"bits": 3},
            "l.{0..1}.*": {"bits": 5},
            "l.1.weight": {"bits": 8},
            "re:m\\..*": {"bits": 6},
        }
    )
    index = dense("l.0.weight", "l.1.weight", "l.0.bias", "m.weight")
    found = component("tensor-map", given, index)
    assert {w.name: (w.scheme.bits, w.pointer) for w in found.weights} == {
        "l.1.weight": (8, "/tensors/l.1.weight"),
        "l.0.weight": (3, "/tensors/l.*.weight"),
        "l.0.bias": (5, "/tensors/l.{0..1}.*"),
        "m.weight": (6, "/tensors/re:m\\..*"),
    }


def test_a_key_with_a_shape_is_a_plain_name() -> None:
    name = "experts[0].*.weight"
    given = config({name: {"shape": [2, 64]}})
    found = component("tensor-map", given, dense(name, "experts0.a.weight"))
    assert [weight.name for weight in found.weights] == [name]


def test_absent_names_are_promised_all_the_same() -> None:
    found = component("tensor-map", config({"a.weight": {}}), dense("b.weight"))
    assert [weight.name for weight in found.weights] == ["a.weight"]
    assert found.entries[0].matches == ()


@pytest.mark.parametrize("kept", ["a.weight", "a.*", "{a,b}.weight", "re:a\\..*"])
@pytest.mark.parametrize(
    "stored", [True, False, None], ids=["stored", "absent", "none"]
)
def test_kept_and_quantized_is_a_contradiction(
    kept: str,
    stored: bool | None,  # noqa: FBT001 - a parameter of the test
) -> None:
    index = None if stored is None else packed("a" if stored else "x")
    lowered = lower("tensor-map", config({"a.weight": {}}, [kept]), index)
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.CONTRADICTION
    assert [place.pointer for place in defect.problem.at] == [
        "/kept_16bit/0",
        "/tensors/a.weight",
    ]
    assert "'a.weight' is kept by /kept_16bit/0" in defect.problem.message
    (found,) = lowered.manifest.components
    assert [weight.name for weight in found.weights] == ["a.weight"]
    assert "a.weight" not in {each.name for each in found.kept}


@pytest.mark.parametrize(
    "text", ["re:(?=a)b", "re:(a)\\1", "re:[", "re:", "{{{{{a,b},c},d},e},f}"]
)
def test_patterns_that_cannot_be_used(text: str) -> None:
    lowered = lower("tensor-map", config({}, ["ok", text]), dense("b"))
    (defect,) = of_kind(lowered, DefectKind.BAD_PATTERN)
    assert defect.problem.at[0].pointer == "/kept_16bit/1"
    assert defect.problem.message.startswith(f"pattern {text!r} cannot be used: ")


def nibbles(zeros: str | None) -> dict[str, tuple[str, tuple[int, ...]]]:
    parts: dict[str, tuple[str, tuple[int, ...]]] = {
        "a.weight": ("U8", (4, 32)),
        "a.scales": ("F16", (4, 1)),
    }
    return parts | (
        {"a.zeros": (zeros, (4, 1))} if zeros else {"a.biases": ("F16", (4, 1))}
    )


@pytest.mark.parametrize(
    ("zeros", "scheme"),
    [
        (None, Affine(4, 64, FLOAT16, "u8-nibbles")),
        ("U8", ZeroPoint(4, 64, FLOAT16, ("U8",), "u8-nibbles")),
        ("F16", ZeroPoint(4, 64, FLOAT16, ("F16", "BF16", "F32"), "u8-nibbles")),
    ],
)
def test_nibbles_are_seen_and_emitted_as_affine(
    zeros: str | None, scheme: Affine | ZeroPoint
) -> None:
    index = index_of(nibbles(zeros))
    lowered = lower("tensor-map", config({"a.weight": {}}), index)
    (weight,) = lowered.manifest.components[0].weights
    assert weight.scheme == scheme
    again = lower("tensor-map", emit_again("tensor-map", lowered), index)
    assert again.manifest.components[0].weights == (weight,)


def test_a_global_scale_is_seen() -> None:
    index = index_of(
        {
            "a.weight": ("U32", (2, 4, 8)),
            "a.scales": ("U8", (2, 4, 4)),
            "a.global_scale": ("F32", (2,)),
        }
    )
    given = config({"a.weight": {}}, mode="nvfp4", group_size=16)
    lowered = lower("tensor-map", given, index)
    (weight,) = lowered.manifest.components[0].weights
    assert weight.scheme == Microscaling(
        "e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"
    )
    again = lower("tensor-map", emit_again("tensor-map", lowered), index)
    assert again.manifest.components[0].weights == (weight,)


def test_emit_takes_the_usual_scheme_to_the_top() -> None:
    weights = [
        Weight(f"{number}.weight", Affine(8, 32, FLOAT16, "u32-lsb"), "", (4, 64))
        for number in range(3)
    ]
    odd = Weight("odd.weight", Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"), "")
    assert emit(single(*weights, odd, kept=("z.weight", "b.weight"))) == {
        "bits": 8,
        "group_size": 32,
        "mode": "affine",
        "kept_16bit": ["b.weight", "z.weight"],
        "tensors": {
            **{
                w.name: {"bits": 8, "group_size": 32, "shape": [4, 64]} for w in weights
            },
            "odd.weight": {"bits": 4, "group_size": 32, "mode": "mxfp4"},
        },
    }


def test_emit_of_nothing() -> None:
    assert emit(single()) == {
        "bits": 4,
        "group_size": 64,
        "mode": "affine",
        "kept_16bit": [],
        "tensors": {},
    }


def test_emit_writes_names_with_metacharacters_so_that_they_stay_names() -> None:
    weights = (
        Weight("a[0].*.weight", Q4, ""),
        Weight("re:b", Q4, "", (4, 64)),
    )
    written = emit(single(*weights, kept=("c[1]", "re:é→.d", "plain")))
    index = dense("a[0].*.weight", "a0.x.weight", "re:b", "b", "c[1]", "c1", "re:é→.d")
    lowered = lower("tensor-map", written, index)
    (found,) = lowered.manifest.components
    assert {(w.name, w.shape) for w in found.weights} == {
        ("a[0].*.weight", None),
        ("re:b", (4, 64)),
    }
    assert {each.name for each in found.kept} == {"c[1]", "re:é→.d"}


def test_emit_keeps_the_lines_that_matched_nothing_yet() -> None:
    lowered = lower("tensor-map", config({}, ["a.*", "b.weight", "{c,d}"]), None)
    written = emit_again("tensor-map", lowered)
    assert written["kept_16bit"] == ["a.*", "b.weight", "c", "d"]


def test_emit_keeps_a_contradiction() -> None:
    index = packed("a", kept=["b.weight"])
    lowered = lower("tensor-map", config({"a.weight": {}}, ["*.weight"]), index)
    written = emit_again("tensor-map", lowered)
    assert written["kept_16bit"] == ["*.weight", "b.weight"]


def test_substrings_of_another_dialect_become_patterns() -> None:
    q4 = {
        "quant": "q4",
        "group": 64,
        "scheme": "",
        "protected_fp16": ["norm", "a[0]", "ö^→", "\\d"],
        "emb_q4": ["x.weight"],
    }
    written = emit_again("tensor-map", lower("q4-lists", q4, dense("x.weight")))
    index = dense("x.weight", "b.norm.weight", "a0", "0", "-ö^→-\n-", "-\\d-")
    (found,) = lower("tensor-map", written, index).manifest.components
    assert {each.name for each in found.kept} == {
        "b.norm.weight",
        "a0",
        "-\\d-",
        "-ö^→-\n-",
    }


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (Manifest("x"), "has 0"),
        (Manifest("x", components=(Component("a"), Component("b"))), "has 2"),
        (
            single(Weight("a", ZeroPoint(4, 64, FLOAT16, ("U8",), "u32-lsb"), "")),
            "no words for 'a'",
        ),
        (
            single(
                Weight("a", Microscaling("e2m1", 64, "e8m0", "u32-lsb", "none"), "")
            ),
            "no words for 'a'",
        ),
        (single(Weight("a", Q4, "", (64,))), "/tensors/a/shape"),
        (single(kept=("",)), "/kept_16bit/0"),
    ],
)
def test_what_has_no_words(manifest: Manifest, said: str) -> None:
    with pytest.raises(EmitError, match=said):
        emit(manifest)


@pytest.mark.parametrize("more", [-1, 0, 1, 500])
@pytest.mark.parametrize(
    "sort", ["contradiction", "impossible-scheme", "group-division"]
)
def test_the_rest_of_many_defects_is_counted(sort: str, more: int) -> None:
    names = [f"{number}.weight" for number in range(MOST + more)]
    entry: Config = {} if sort == "contradiction" else {"bits": 7}
    if sort == "group-division":
        entry = {"shape": [1, 65]}
    kept = names if sort == "contradiction" else []
    lowered = lower("tensor-map", config(dict.fromkeys(names, entry), kept))
    assert {defect.kind.value for defect in lowered.defects} == {sort}
    assert len(lowered.defects) == min(MOST + more, MOST + 1)
    said = lowered.defects[-1].problem.message
    assert said.startswith(f"{more} more like this") == (more > 0)
