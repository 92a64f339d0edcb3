"""Laws of `gptq`, `awq` and `auto-round` for arbitrary documents and tensors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from referencing import Registry
from support.lowering import emit_again, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse
from qmanifest.errors import EmitError
from qmanifest.manifest import from_json, to_json
from qmanifest.schema import schema

if TYPE_CHECKING:
    from qmanifest.dialects.base import Lowered
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
MODULES: Final = ("a", "a.b", "b.gate", "b.gate_proj", "layers.0.q", "layers.1.q")
bits = st.sampled_from([2, 3, 4, 5, 8])
sizes = st.sampled_from([-1, 32, 64])
own = st.fixed_dictionaries(
    {},
    optional={"bits": bits, "group_size": sizes, "sym": st.booleans(), "x": st.none()},
)
patterns = st.sampled_from(["a", "+:a", "-:b", "-:a\\.b$", ".*q", "-:layers\\.1", "z"])
dynamic = st.dictionaries(patterns, own, max_size=4)
layers = st.dictionaries(
    st.sampled_from([*MODULES, ".*q.*", "gate", "b\\."]),
    own | st.just({"bits": 16}),
    max_size=4,
)
DOCUMENTS: Final[dict[str, st.SearchStrategy[Config]]] = {
    "gptq": st.fixed_dictionaries(
        {"quant_method": st.just("gptq")},
        optional={
            "bits": bits,
            "group_size": sizes,
            "sym": st.booleans(),
            "desc_act": st.booleans(),
            "checkpoint_format": st.sampled_from(["gptq", "gptq_v2", "GPTQ_P"]),
            "dynamic": dynamic,
            "modules_in_block_to_quantize": st.lists(
                st.sampled_from(["a", "q", ["gate"]]), max_size=2
            ),
            "lm_head": st.booleans(),
            "meta": st.just({"quantizer": ["x:1"]}),
        },
    ),
    "awq": st.fixed_dictionaries(
        {"quant_method": st.just("awq")},
        optional={
            "group_size": sizes,
            "version": st.sampled_from(["gemm", "GEMV", "gemv_fast", "marlin"]),
            "modules_to_not_convert": st.lists(
                st.sampled_from(["a.b", "gate", "layers.1", "none"]), max_size=3
            ),
        },
    ),
    "auto-round": st.fixed_dictionaries(
        {"quant_method": st.just("auto-round")},
        optional={
            "bits": bits,
            "group_size": sizes,
            "sym": st.booleans(),
            "packing_format": st.sampled_from(
                ["auto_round", "auto_round:auto_gptq", "auto_round:auto_awq"]
            ),
            "extra_config": layers,
            "block_name_to_quantize": st.sampled_from(["a", "a,layers", ["b"]]),
        },
    ),
}
each_dialect = pytest.mark.parametrize("dialect", DOCUMENTS)
cases = st.data()


@st.composite
def indexes(draw: st.DrawFn) -> TensorIndex:
    """Index some modules' `.qweight` with its companions, and others' plain floats."""
    tensors: dict[str, tuple[str, Shape]] = {}
    for module in draw(st.permutations((*MODULES, "lm_head"))):
        kind = draw(st.sampled_from(["packed", "plain", "absent"]))
        if kind == "packed":
            tensors[f"{module}.qweight"] = ("I32", (16, 64))
            tensors[f"{module}.qzeros"] = ("I32", (2, 8))
            tensors[f"{module}.scales"] = ("F16", (2, 64))
        elif kind == "plain":
            tensors[f"{module}.weight"] = ("F16", (64, 128))
    return index_of(tensors)


def described(lowered: Lowered) -> tuple[dict[str, object], set[str]]:
    """Give the scheme of every quantized weight, and the names that are kept."""
    (component,) = lowered.manifest.components
    schemes: dict[str, object] = {w.name: w.scheme for w in component.weights}
    return schemes, {each.name for each in component.kept}


@each_dialect
@given(data=cases)
def test_documents_lose_nothing(dialect: str, data: st.DataObject) -> None:
    config = data.draw(DOCUMENTS[dialect])
    document = parse(dialect_named(dialect), config, Place())
    assert document.to_json() == config


@each_dialect
@given(data=cases)
def test_lowering_is_pure(dialect: str, data: st.DataObject) -> None:
    config = data.draw(DOCUMENTS[dialect])
    before = json.dumps(config)
    index = data.draw(indexes() | st.none())
    assert lower(dialect, config, index) == lower(dialect, config, index)
    assert json.dumps(config) == before


@each_dialect
@given(data=cases)
def test_what_is_lowered_hangs_together(dialect: str, data: st.DataObject) -> None:
    index = data.draw(indexes() | st.none())
    lowered = lower(dialect, data.draw(DOCUMENTS[dialect]), index)
    (component,) = lowered.manifest.components
    schemes, kept = described(lowered)
    assert len(schemes) == len(component.weights)
    assert schemes.keys().isdisjoint(kept)
    pointers = {entry.pointer for entry in component.entries} | {"", "/lm_head"}
    assert {weight.pointer for weight in component.weights} <= pointers
    assert from_json(to_json(lowered.manifest)) == lowered.manifest


@each_dialect
@given(data=cases)
def test_what_is_emitted_describes_the_same(dialect: str, data: st.DataObject) -> None:
    """AWQ keeps by parts of names, so that some names cannot be told apart."""
    index = data.draw(indexes())
    lowered = lower(dialect, data.draw(DOCUMENTS[dialect]), index)
    schemes, kept = described(lowered)
    assume(schemes)
    try:
        document = emit_again(dialect, lowered)
    except EmitError:
        assert dialect == "awq"
        parts = [name.removesuffix(".weight") for name in kept]
        assert any(part in name for part in parts for name in schemes)
        return
    found, also = described(lower(dialect, document, index))
    assert {name: found.get(name) for name in schemes} == schemes
    assert kept <= also


VALIDATORS: Final = {
    dialect: Draft202012Validator(schema(dialect), registry=Registry())
    for dialect in DOCUMENTS
}
# Whole floats are left out: JSON Schema calls 4.0 an integer, and the readers do not.
junk: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, -1, -2, 4, 0.5, "", "gptq", [], {}, ["a"], [["a"]], [1, 2]]
)


@each_dialect
@given(data=cases)
def test_schema_and_reader_agree(dialect: str, data: st.DataObject) -> None:
    document = dialect_named(dialect).document
    config = data.draw(DOCUMENTS[dialect])
    keys = [field.alias or name for name, field in document.model_fields.items()]
    changes = data.draw(st.dictionaries(st.sampled_from(keys), junk, max_size=2))
    deep = data.draw(st.dictionaries(st.sampled_from(["a", "-:b"]), own | junk))
    nested = data.draw(st.sampled_from(["dynamic", "extra_config", "x"]))
    config = config | changes | {nested: deep}
    errors = [error.message for error in VALIDATORS[dialect].iter_errors(config)]
    try:
        document.model_validate(config)
    except ValidationError:
        assert errors
    else:
        assert not errors
