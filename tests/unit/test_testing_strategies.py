"""What the strategies draw is valid, and odd enough to be worth drawing."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from hypothesis import find, given

from qmanifest.dtypes import DTYPES, nbytes
from qmanifest.testing.strategies import (
    manifests,
    schemes,
    shapes,
    tensor_names,
    tensor_tables,
    weights,
)

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest, Weight
    from qmanifest.testing.tables import RawTensor


@given(weight=weights())
def test_weights_have_whole_parts(weight: Weight) -> None:
    assert weight.shape is not None
    assert weight.shape[-1] % weight.scheme.group_size == 0
    assert all(spec.nbytes for spec in weight.parts())


@given(table=tensor_tables())
def test_tables_hold_what_they_say(table: dict[str, RawTensor]) -> None:
    for dtype, shape, data in table.values():
        assert len(data) == nbytes(dtype, shape)
        assert prod(shape) * DTYPES[dtype].bits % 8 == 0


@given(manifest=manifests())
def test_manifests_name_nothing_twice(manifest: Manifest) -> None:
    for component in manifest.components:
        names = [weight.name for weight in component.weights]
        names += [kept.name for kept in component.kept]
        names += [
            spec.name for weight in component.weights for spec in weight.parts()[1:]
        ]
        assert len(set(names)) == len(names)


def test_odd_things_are_drawn() -> None:
    find(shapes(), lambda shape: shape == ())
    find(shapes(), lambda shape: len(shape) > 1 and 0 in shape)
    find(tensor_names(), lambda name: not name.isascii())
    find(tensor_tables(), lambda table: any(t[0] == "F6_E2M3" for t in table.values()))
    find(schemes(), lambda scheme: scheme.kind == "microscaling")
    find(weights(), lambda weight: len(weight.shape or ()) == 3)
    find(manifests(), lambda manifest: len(manifest.components) == 2)
