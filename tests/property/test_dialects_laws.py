"""Laws that every dialect keeps, for any document and any stored tensors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.lowering import emit_again, index_of, lower

from qmanifest.dialects import DIALECTS, dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.parsing import parse
from qmanifest.errors import EmitError
from qmanifest.manifest import from_json, to_json
from qmanifest.testing.strategies import manifests, tensor_names

if TYPE_CHECKING:
    from qmanifest.dialects.base import Lowered
    from qmanifest.manifest import Manifest
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
STEMS: Final = ("a", "a.b", "l.0", "l.1", "x[0]", "re:y", "ö→*", "norm", "{z,q}")
NAMES: Final = (*(f"{stem}.weight" for stem in STEMS), "a", "norm.bias", "x0.weight")
PATTERNS: Final = (
    *("*", "l.*", "l.{0..1}.weight", "?.weight", "x[0].weight", "*.bias"),
    *("re:a.*", "re:.*\\.weight", "re:(", "{a,norm}.weight", "nothing.*"),
)

names = st.sampled_from(NAMES) | tensor_names()
lines = st.sampled_from(PATTERNS) | names
line_lists = st.lists(lines, max_size=5, unique=True)


@st.composite
def indexes(draw: st.DrawFn) -> TensorIndex:
    """Draw tensors of some names, stored 16-bit or packed in any of the ways."""
    tensors: dict[str, tuple[str, Shape]] = {}
    for name in draw(st.lists(names, max_size=8, unique=True)):
        stem, kind = name.removesuffix(".weight"), draw(st.integers(0, 5))
        tensors[name] = (("U32", "U8", "F16")[kind % 3], (4, 32))
        if kind < 2:
            tensors[f"{stem}.scales"] = ("F16", (4, 1))
            other = draw(st.sampled_from(["biases", "zeros", "global_scale"]))
            tensors[f"{stem}.{other}"] = (draw(st.sampled_from(["F16", "U8"])), (4, 1))
    return index_of(tensors)


entries = st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([2, 3, 4, 6, 8]),
        "group_size": st.sampled_from([16, 32, 64, 128]),
        "mode": st.sampled_from(["affine", "mxfp4", "mxfp8", "nvfp4"]),
        "shape": st.lists(
            st.integers(0, 4).map(lambda n: 64 * n), min_size=2, max_size=3
        ),
    },
)
scans = st.fixed_dictionaries(
    {},
    optional={
        "file": st.sampled_from(["8b64", "x.json"]) | st.none(),
        "keep_backbone": st.integers(0, 9),
        "keep_depth": st.integers(0, 999),
    },
)
overrides = st.booleans() | st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([3, 4, 8]),
        "group_size": st.sampled_from([16, 32, 64]),
        "mode": st.sampled_from(["affine", "mxfp4", "nvfp4"]),
        "global_scale": st.booleans(),
    },
)
modules = st.sampled_from(STEMS) | tensor_names().filter(
    lambda name: name not in {"bits", "group_size", "mode", "$schema"}
)
DOCUMENTS: Final[dict[str, st.SearchStrategy[Config]]] = {
    "tensor-map": st.fixed_dictionaries(
        {
            "bits": st.sampled_from([4, 5, 7, 8]),
            "group_size": st.sampled_from([32, 48, 64]),
            "kept_16bit": line_lists,
            "tensors": st.dictionaries(lines, entries, max_size=5),
        },
        optional={
            "mode": st.sampled_from(["affine", "mxfp4"]),
            "scan": scans | st.none(),
            "$schema": st.just("urn:x"),
        },
    ),
    "q4-lists": st.fixed_dictionaries(
        {
            "quant": st.just("q4"),
            "group": st.sampled_from([16, 64]),
            "scheme": st.sampled_from(["", "8-bit bf16", "4-bit"]),
            "protected_fp16": line_lists,
            "emb_q4": line_lists,
        },
        optional={"rr_q4": line_lists, "x_y_q4": line_lists},
    ),
    "mlx": st.builds(
        dict.__or__,
        st.dictionaries(modules, overrides, max_size=5),
        st.fixed_dictionaries(
            {
                "bits": st.sampled_from([4, 8]),
                "group_size": st.sampled_from([32, 64]),
            },
            optional={"mode": st.sampled_from(["affine", "nvfp4"])},
        ),
    ),
}

every_dialect = pytest.mark.parametrize("dialect", DOCUMENTS)
cases = st.data()


def test_every_dialect_has_documents_here() -> None:
    assert DOCUMENTS.keys() == {dialect.id for dialect in DIALECTS}


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
    index = data.draw(indexes() | st.none())
    assert lower(dialect, config, index) == lower(dialect, config, index)
    assert json.dumps(config) == before


@every_dialect
@given(data=cases)
def test_what_is_lowered_hangs_together(dialect: str, data: st.DataObject) -> None:
    index = data.draw(indexes() | st.none())
    lowered = lower(dialect, data.draw(DOCUMENTS[dialect]), index)
    for component in lowered.manifest.components:
        quantized = [weight.name for weight in component.weights]
        kept = [each.name for each in component.kept]
        assert len(set(quantized)) == len(quantized)
        assert len(set(kept)) == len(kept)
        assert set(quantized).isdisjoint(kept)
        if index is not None:
            matched = {name for entry in component.entries for name in entry.matches}
            assert matched <= index.keys()
            assert set(kept) <= index.keys()
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


@every_dialect
@given(data=cases)
def test_what_is_emitted_describes_the_same(dialect: str, data: st.DataObject) -> None:
    index = data.draw(indexes() | st.none())
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
