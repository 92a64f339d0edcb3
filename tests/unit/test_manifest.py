"""The manifest: parts of weights, lookups, and its lossless JSON."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.families import MLX_NAMES, PartNames
from qmanifest.findings import Severity
from qmanifest.manifest import (
    Component,
    Entry,
    Kept,
    Manifest,
    Weight,
    from_json,
    to_json,
)
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

Q4 = Affine(4, 64, FLOAT16, "u32-lsb")


def test_parts_of_an_affine_weight() -> None:
    codes, scales, biases = Weight("a.b.weight", Q4, "/tensors/0", (3, 128)).parts()
    assert (codes.name, codes.role, codes.dtypes, codes.shape) == (
        "a.b.weight",
        "codes",
        ("U32",),
        (3, 16),
    )
    assert (scales.name, scales.role, scales.dtypes, scales.shape) == (
        "a.b.scales",
        "scales",
        FLOAT16,
        (3, 2),
    )
    assert (biases.name, biases.shape) == ("a.b.biases", (3, 2))
    assert {part.pointer for part in (codes, scales, biases)} == {"/tensors/0"}
    assert (codes.nbytes, scales.nbytes) == (192, 12)


def test_parts_of_a_shape_that_is_given_win_over_the_declared_one() -> None:
    weight = Weight("a.weight", Q4, "", (3, 128))
    assert weight.parts((5, 64))[0].shape == (5, 8)
    assert weight.parts()[0].shape == (3, 16)
    unknown = Weight("a.weight", Q4, "").parts()
    assert [part.shape for part in unknown] == [None] * 3
    assert [part.nbytes for part in unknown] == [None] * 3


@pytest.mark.parametrize(
    ("weight", "role", "name"),
    [
        ("a.weight", "codes", "a.weight"),
        ("a.weight", "scales", "a.scales"),
        ("a.weight", "zeros", "a.zeros"),
        ("a.weight", "global_scale", "a.global_scale"),
        ("experts.up", "codes", "experts.up"),
        ("experts.up", "biases", "experts.up.biases"),
        (".weight", "scales", ".scales"),
    ],
)
def test_names_of_parts(weight: str, role: str, name: str) -> None:
    assert MLX_NAMES.name(weight, role) == name


def test_components_and_weights() -> None:
    one, two = Weight("a", Q4, ""), Weight("b", Q4, "")
    emb, rr = Component("emb", (one, two)), Component("rr", (one,))
    manifest = Manifest("x", components=(emb, rr))
    assert list(manifest.weights()) == [(emb, one), (emb, two), (rr, one)]
    assert manifest.component("rr") is rr
    with pytest.raises(KeyError):
        manifest.component("")
    assert list(Manifest("x").weights()) == []


EVERYTHING = Manifest(
    "q4-lists",
    "quant_config.json",
    (
        Component(
            "emb",
            (
                Weight("a.weight", Q4, "/emb_q4/0"),
                Weight(
                    "b.weight", ZeroPoint(4, 64, ("F16",), ("U8",), "u8-nibbles"), "/x"
                ),
                Weight(
                    "c",
                    Microscaling(
                        "e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"
                    ),
                    "/y",
                    (2, 4, 32),
                ),
                Weight(
                    "d",
                    Affine(8, 32, FLOAT, "u32-lsb"),
                    "",
                    (4, 32),
                    PartNames("x", (("scales", ".s"),)),
                ),
            ),
            (Kept("n\u202eörm", "/protected_fp16/0", ("F16",)),),
            (
                Entry(
                    "/emb_q4/0",
                    Pattern("a.weight", Syntax.EXACT),
                    "quantize",
                    ("a.weight",),
                    None,
                ),
                Entry(
                    "/p/0",
                    Pattern("re:é\n", Syntax.REGEX),
                    "keep",
                    (),
                    Severity.NOTE,
                    ".weight",
                ),
                Entry("/p/1", Pattern("n", Syntax.SUBSTRING), "keep"),
            ),
            exhaustive=True,
            pointer="/emb_q4",
        ),
        Component(""),
    ),
)


def test_json_loses_nothing() -> None:
    text = to_json(EVERYTHING)
    assert from_json(text) == EVERYTHING
    assert from_json(text.encode()) == EVERYTHING
    assert to_json(from_json(text)) == text


def test_json_is_plain() -> None:
    data = json.loads(to_json(EVERYTHING))
    weight = data["components"][0]["weights"][1]
    assert weight["scheme"] == {
        "bits": 4,
        "group_size": 64,
        "scale": ["F16"],
        "zero": ["U8"],
        "pack": "u8-nibbles",
        "kind": "zero-point",
    }
    assert data["components"][0]["entries"][1]["unused"] == "note"
    assert data["config_file"] == "quant_config.json"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"dialect": 1}',
        '{"dialect": "x", "components": [{"weights": []}]}',
    ],
)
def test_what_is_no_manifest(text: str) -> None:
    with pytest.raises(ValidationError):
        from_json(text)


def test_scheme_is_told_by_its_kind() -> None:
    zero = ZeroPoint(4, 64, ("F16",), ("U8",), "u32-lsb")
    weight = Weight("a", zero, "")
    text = to_json(Manifest("x", components=(Component("", (weight,)),)))
    assert next(from_json(text).weights())[1].scheme == zero
    with pytest.raises(ValidationError):
        from_json(text.replace("zero-point", "nf4"))
