"""A schema accepts a document just where the dialect's own reader does."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from referencing import Registry
from support.documents import GOOD, altered, junk

from qmanifest.dialects import DIALECTS, dialect_named
from qmanifest.schema import schema

VALIDATORS: Final = {
    dialect.id: Draft202012Validator(schema(dialect.id), registry=Registry())
    for dialect in DIALECTS
}
names = st.lists(st.one_of(st.sampled_from(["a.weight", "b.*", ""]), junk), max_size=3)
bits = st.one_of(st.sampled_from([2, 4, 8]), junk)
mode = st.one_of(st.sampled_from(["affine", "mxfp4", "nvfp4"]), junk)
entry = st.fixed_dictionaries(
    {},
    optional={
        "bits": bits,
        "group_size": bits,
        "mode": mode,
        "shape": st.one_of(st.lists(st.one_of(st.just(32), junk), max_size=3), junk),
        "global_scale": junk,
        "$schema": junk,
        "extra": junk,
    },
)
scan = st.fixed_dictionaries(
    {},
    optional={
        "file": junk,
        "keep_backbone": junk,
        "keep_depth": junk,
        "rule": junk,
        "extra": junk,
    },
)
UNTYPED: Final = {
    "tensor-map": st.fixed_dictionaries(
        {
            "bits": bits,
            "group_size": bits,
            "kept_16bit": st.one_of(names, junk),
            "tensors": st.one_of(st.dictionaries(st.sampled_from("ab"), entry), junk),
        },
        optional={"mode": mode, "scan": st.one_of(scan, junk), "$schema": junk},
    ),
    "q4-lists": st.fixed_dictionaries(
        {
            "quant": st.one_of(st.sampled_from(["q2", "q4", "q7"]), junk),
            "group": bits,
            "scheme": st.one_of(st.just("prose"), junk),
            "protected_fp16": st.one_of(names, junk),
        },
        optional={"emb_q4": names, "rr_q8": junk, "_q4": junk, "$schema": junk},
    ),
    "mlx": st.fixed_dictionaries(
        {"bits": bits, "group_size": bits},
        optional={"mode": mode, "layers.0": st.one_of(entry, junk), "$schema": junk},
    ),
}


def read(dialect: str, document: object) -> bool:
    try:
        dialect_named(dialect).document.model_validate(document)
    except ValidationError:
        return False
    return True


def agree(dialect: str, document: object) -> bool:
    """Give the verdict that both have."""
    verdict = read(dialect, document)
    errors = [error.message for error in VALIDATORS[dialect].iter_errors(document)]
    assert (not errors) == verdict, (document, errors)
    return verdict


def test_every_dialect_is_tried() -> None:
    assert set(GOOD) == set(VALIDATORS)


@pytest.mark.parametrize("dialect", GOOD)
def test_good_document(dialect: str) -> None:
    assert agree(dialect, GOOD[dialect])
    assert agree(dialect, {**GOOD[dialect], "$schema": "urn:qmanifest:schema:v1:x"})


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize("value", [None, [], "x", 7], ids=repr)
def test_no_object(dialect: str, value: object) -> None:
    assert not agree(dialect, value)


@pytest.mark.parametrize("dialect", GOOD)
def test_an_empty_one_lacks_what_is_required(dialect: str) -> None:
    fields = dialect_named(dialect).document.model_fields.values()
    assert agree(dialect, {}) != any(field.is_required() for field in fields)


@pytest.mark.parametrize(
    ("dialect", "change"),
    [
        ("tensor-map", {"kept_16bit": ["a", "a"]}),
        ("tensor-map", {"tensors": {"": {}}}),
        ("tensor-map", {"tensors": {"a": {"shape": [4]}}}),
        ("tensor-map", {"bits": True}),
        ("q4-lists", {"emb_q4": ["a", "a"]}),
        ("q4-lists", {"emb_q7": []}),
        ("q4-lists", {"_q4": []}),
        ("q4-lists", {"emb_q4": {"a": 1}}),
        ("mlx", {"a.b": "8"}),
        ("mlx", {"a.b": {"bit": 8}}),
    ],
)
def test_bad_document(dialect: str, change: dict[str, Any]) -> None:
    assert not agree(dialect, {**GOOD[dialect], **change})


def test_q4_lists_needs_a_list() -> None:
    document = {
        key: value for key, value in GOOD["q4-lists"].items() if key != "emb_q4"
    }
    assert not agree("q4-lists", document)
    assert not agree("q4-lists", {**document, "$schema": "x"})


@pytest.mark.parametrize("dialect", GOOD)
@settings(max_examples=100)
@given(data=st.data())
def test_schema_and_reader_agree(dialect: str, data: st.DataObject) -> None:
    agree(dialect, data.draw(altered(dialect)))


@pytest.mark.parametrize("dialect", UNTYPED)
@settings(max_examples=100)
@given(data=st.data())
def test_they_agree_about_values_of_any_type(dialect: str, data: st.DataObject) -> None:
    agree(dialect, data.draw(UNTYPED[dialect]))
