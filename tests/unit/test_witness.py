"""Who proves a logical shape: the best of three, and none that may mean another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from support import memory

from qmanifest.findings import Location
from qmanifest.manifest import Component, Weight
from qmanifest.schemes import Affine
from qmanifest.witness import Witness, witness

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

NAME = "model.layers.0.mlp.up_proj.weight"
SCHEME = Affine(4, 64, ("F16",), "u32-lsb")
DIMENSIONS = {"hidden_size": 128}
ORIGINAL = {NAME: ("BF16", (24, 192))}


def found(declared: Shape | None = None, **witnesses: Any) -> Witness | None:  # noqa: ANN401 - for memory.checkpoint
    weight = Weight(NAME, SCHEME, "/tensors/x", declared)
    opened = memory.checkpoint({NAME: ("U32", (24, 8))}, [weight], **witnesses)
    ((component, _),) = opened.found()
    return witness(opened, component, weight)


def test_declared_shape_is_best() -> None:
    best = found((24, 64), original=ORIGINAL, model_config=DIMENSIONS)
    assert best is not None
    assert best.shape == (24, 64)
    assert best.at == Location(memory.CONFIG, "/tensors/x", NAME)
    assert best.strict
    assert "[24, 64]" in best.said_by


def test_original_comes_next() -> None:
    second = found(original=ORIGINAL, model_config=DIMENSIONS)
    assert second is not None
    assert (second.in_features, second.shape) == (192, (24, 192))
    assert second.at == Location(memory.FILE, tensor=NAME)
    assert "BF16 [24, 192]" in second.said_by


def test_packed_original_shows_no_shape() -> None:
    packed = {NAME: ("U32", (24, 8))}
    assert found(original=packed) is None
    fallback = found(original=packed, model_config=DIMENSIONS)
    assert fallback is not None
    assert fallback.in_features == 128


def test_dimensions_come_last_and_know_no_rows() -> None:
    last = found(model_config=DIMENSIONS)
    assert last == Witness(
        128, None, "hidden_size = 128", Location("config.json"), strict=False
    )
    assert found() is None


def test_dimensions_of_several_models() -> None:
    """`config.json` is of the model that has norms of the hidden size."""
    weight = Weight(NAME, SCHEME, "")
    tensors: dict[str, tuple[str, Shape]] = {NAME: ("U32", (24, 16))}
    with_norm = {**tensors, "norm.weight": ("F16", (128,))}
    opened = memory.checkpoint(tensors, [weight], model_config=DIMENSIONS)
    assert opened.manifest is not None
    components = (Component("emb", (weight,)), Component("rr", (weight,)))
    both = replace(
        opened,
        manifest=replace(opened.manifest, components=components),
        stores={"emb": memory.store(with_norm), "rr": memory.store(tensors)},
    )
    emb, rr = (witness(both, component, weight) for component in components)
    assert emb is not None
    assert emb.in_features == 128
    assert rr is None
