"""Laws that every dialect keeps, for any document and any stored tensors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.documents import DOCUMENTS, GOOD
from support.lowering import emit_again, lower
from support.tensors_drawn import indexes

from qmanifest.dialects import DIALECTS, dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse
from qmanifest.errors import EmitError
from qmanifest.evidence import Evidence
from qmanifest.manifest import from_json, to_json
from qmanifest.testing.strategies import manifests

if TYPE_CHECKING:
    from qmanifest.dialects.base import Lowered
    from qmanifest.manifest import Manifest
    from qmanifest.schemes import Scheme

FOUNDING: Final = ("tensor-map", "q4-lists", "mlx")
"""Dialects whose lines decide what is quantized, and not what is stored."""
every_dialect = pytest.mark.parametrize("dialect", DOCUMENTS)
cases = st.data()


def test_every_dialect_has_documents_here() -> None:
    ids = {dialect.id for dialect in DIALECTS}
    assert ids == DOCUMENTS.keys() == GOOD.keys()


@every_dialect
@given(data=cases)
def test_documents_lose_nothing(dialect: str, data: st.DataObject) -> None:
    config = data.draw(DOCUMENTS[dialect])
    document = parse(dialect_named(dialect), config, Place())
    assert document.to_json() == config
    assert json.loads(json.dumps(document.to_json())) == config
    assert parse(dialect_named(dialect), document.to_json(), Place()) == document


@every_dialect
@given(data=cases)
def test_lowering_is_pure(dialect: str, data: st.DataObject) -> None:
    config = data.draw(DOCUMENTS[dialect])
    before = json.dumps(config)
    index = data.draw(indexes(dialect) | st.none())
    assert lower(dialect, config, index) == lower(dialect, config, index)
    assert json.dumps(config) == before


@every_dialect
@given(data=cases)
def test_what_is_lowered_hangs_together(dialect: str, data: st.DataObject) -> None:
    index = data.draw(indexes(dialect) | st.none())
    lowered = lower(dialect, data.draw(DOCUMENTS[dialect]), index)
    for component in lowered.manifest.components:
        quantized = [weight.name for weight in component.weights]
        kept = [each.name for each in component.kept]
        assert len(set(quantized)) == len(quantized)
        assert len(set(kept)) == len(kept)
        both = set(quantized).intersection(kept)
        if index is None or dialect in FOUNDING:
            assert not both
        else:  # QM208 reports them, and sizes count them as they are stored
            assert both <= Evidence(index).packed
        if dialect not in FOUNDING:
            parts = [part.name for w in component.weights for part in w.parts()]
            assert len(set(parts)) == len(parts)
        if index is not None:
            known = {*index, *Evidence(index).logical}
            matched = {name for entry in component.entries for name in entry.matches}
            assert matched <= known
            assert set(kept) <= known
    assert from_json(to_json(lowered.manifest)) == lowered.manifest


def described(lowered: Lowered) -> dict[str, tuple[dict[str, object], set[str]]]:
    """Give scheme and shape by name, and the kept names, of each component."""
    return {
        component.name: (
            {w.name: (w.scheme, w.shape) for w in component.weights},
            {each.name for each in component.kept},
        )
        for component in lowered.manifest.components
    }


@pytest.mark.parametrize("dialect", FOUNDING)
@given(data=cases)
def test_what_is_emitted_describes_the_same(dialect: str, data: st.DataObject) -> None:
    index = data.draw(indexes(dialect) | st.none())
    lowered = lower(dialect, data.draw(DOCUMENTS[dialect]), index)
    weights = [weight for _, weight in lowered.manifest.weights()]
    if dialect == "q4-lists":
        assume(weights)
    if dialect == "mlx":  # MLX has one packing, and module paths for names
        stems = [weight.name.removesuffix(".weight") for weight in weights]
        assume(len(set(stems)) == len(stems))
        assume({weight.scheme.pack for weight in weights} <= {"u32-lsb"})
        assume({"bits", "mode", "group_size", "$schema"}.isdisjoint(stems))
    again = lower(dialect, emit_again(dialect, lowered), index)
    assert described(again) == described(lowered)


@pytest.mark.parametrize(
    "dialect", [each.id for each in DIALECTS if each.id not in FOUNDING and each.emits]
)
@given(data=cases)
def test_what_is_stored_is_described_the_same(
    dialect: str, data: st.DataObject
) -> None:
    """Where every weight that is stored quantized is declared."""
    index = data.draw(indexes(dialect))
    lowered = lower(dialect, data.draw(DOCUMENTS[dialect]), index)
    weights = [weight for _, weight in lowered.manifest.weights()]
    assume({weight.name for weight in weights} == Evidence(index).packed)
    try:
        config = emit_again(dialect, lowered)
    except EmitError:
        return
    again = lower(dialect, config, index)
    schemes = {weight.name: str(weight.scheme) for weight in weights}
    assert {w.name: str(w.scheme) for _, w in again.manifest.weights()} == schemes


@pytest.mark.parametrize("dialect", [each.id for each in DIALECTS if not each.emits])
@given(manifest=manifests())
def test_what_is_not_written_says_so(dialect: str, manifest: Manifest) -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(dialect).emit(manifest)


def usual(scheme: Scheme) -> tuple[int, int]:
    return scheme.bits, scheme.group_size


@pytest.mark.parametrize("dialect", ["tensor-map", "q4-lists"])
@given(manifest=manifests())
def test_emitted_manifests_are_read_back(dialect: str, manifest: Manifest) -> None:
    try:
        config = dialect_named(dialect).emit(manifest).to_json()
    except EmitError:
        single = [component.name for component in manifest.components] == [""]
        schemes = {weight.scheme for _, weight in manifest.weights()}
        if dialect == "tensor-map":
            assert not single
        else:
            affine = all(scheme.kind == "affine" for scheme in schemes)
            assert single or len({usual(s) for s in schemes}) != 1 or not affine
        return
    again = lower(dialect, config)
    assert [(w.name, usual(w.scheme)) for _, w in again.manifest.weights()] == [
        (w.name, usual(w.scheme)) for _, w in manifest.weights()
    ]
    if dialect == "tensor-map":
        assert [w.scheme for _, w in again.manifest.weights()] == [
            w.scheme for _, w in manifest.weights()
        ]
        assert described(again)[""][1] == {k.name for k in manifest.components[0].kept}
