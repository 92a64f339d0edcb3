"""Laws of `compressed-tensors`, for any document and any stored tensors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from referencing import Registry
from support.compressed_tensors import Config, documents, indexes, untyped
from support.lowering import emit_again, lower

from qmanifest.dialects import dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse
from qmanifest.evidence import Evidence
from qmanifest.manifest import from_json, to_json
from qmanifest.schema import schema

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex

ID = "compressed-tensors"
SCHEMA = Draft202012Validator(schema(ID), registry=Registry())
any_index = indexes() | st.none()


@given(config=documents)
def test_documents_lose_nothing(config: Config) -> None:
    document = parse(dialect_named(ID), config, Place())
    assert document.to_json() == config
    assert parse(dialect_named(ID), document.to_json(), Place()) == document


@given(config=untyped | documents)
def test_the_schema_accepts_what_the_reader_does(config: Config) -> None:
    try:
        dialect_named(ID).document.model_validate(config)
    except ValidationError:
        assert not SCHEMA.is_valid(config)
    else:
        assert SCHEMA.is_valid(config)


@given(config=documents, index=any_index)
def test_lowering_is_pure(config: Config, index: TensorIndex | None) -> None:
    before = json.dumps(config)
    assert lower(ID, config, index) == lower(ID, config, index)
    assert json.dumps(config) == before


@given(config=documents, index=indexes())
def test_what_is_lowered_hangs_together(config: Config, index: TensorIndex) -> None:
    lowered = lower(ID, config, index)
    assert from_json(to_json(lowered.manifest)) == lowered.manifest
    (component,) = lowered.manifest.components
    quantized = [weight.name for weight in component.weights]
    kept = [each.name for each in component.kept]
    assert len(set(quantized)) == len(quantized)
    assert len(set(kept)) == len(kept)
    assert {weight.codes for weight in component.weights} <= index.keys()


@given(config=documents, index=indexes())
def test_what_is_emitted_describes_the_same(config: Config, index: TensorIndex) -> None:
    """Where nothing is stored that the config does not declare."""
    lowered = lower(ID, config, index)
    (one,) = lowered.manifest.components
    assume({weight.name for weight in one.weights} == Evidence(index).packed)
    again = lower(ID, emit_again(ID, lowered), index)
    (two,) = again.manifest.components
    assert {w.name: w.scheme for w in two.weights} == {
        w.name: w.scheme for w in one.weights
    }
    if one.weights or one.exhaustive:  # else it only seems to keep everything
        assert {each.name for each in two.kept} == {each.name for each in one.kept}
