"""`exl2` and `exl3`: shapes that follow from others, and nothing decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.lowering import component, index_of

from qmanifest.backends.reference import dequantize
from qmanifest.dialects import dialect_named
from qmanifest.errors import BackendError, EmitError
from qmanifest.manifest import Manifest
from qmanifest.packings.arrays import Stored, storage_dtype
from qmanifest.schemes import Opaque

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Tensors = dict[str, "tuple[str, Shape]"]
EXL2: Tensors = {
    "a.q_weight": ("I32", (9, 32)),
    "a.q_scale": ("I32", (2, 4)),
    "a.q_scale_max": ("F16", (2,)),
    "a.q_groups": ("I16", (4,)),
    "a.q_invperm": ("I32", (64,)),
}
EXL3: Tensors = {
    "a.trellis": ("I16", (4, 2, 48)),
    "a.suh": ("F16", (64,)),
    "a.svh": ("F16", (32,)),
}


def weight(dialect: str, tensors: Tensors) -> Any:  # noqa: ANN401 - a weight
    found = component(dialect, {"quant_method": dialect}, index_of(tensors))
    (only,) = found.weights
    assert isinstance(only.scheme, Opaque)
    return only


@pytest.mark.parametrize(("dialect", "tensors"), [("exl2", EXL2), ("exl3", EXL3)])
def test_every_part_has_its_shape(dialect: str, tensors: Tensors) -> None:
    found = weight(dialect, tensors)
    codes = index_of(tensors)[found.codes]
    assert found.logical(codes) == (32, 64)
    for part in found.parts((32, 64)):
        if part.name in tensors:
            assert part.shape == tensors[part.name][1], part.name
            assert tensors[part.name][0] in part.dtypes
        else:
            assert part.optional


@pytest.mark.parametrize("lost", ["a.q_scale_max", "a.q_scale", "a.q_groups"])
def test_groups_are_counted_by_what_is_left(lost: str) -> None:
    tensors = {name: each for name, each in EXL2.items() if name != lost}
    parts = {each.name: each.shape for each in weight("exl2", tensors).parts((32, 64))}
    assert {name: parts[name] for name in tensors} == {
        name: shape for name, (_, shape) in tensors.items()
    }


def test_without_an_order_no_shape_is_known() -> None:
    tensors = {name: each for name, each in EXL2.items() if name != "a.q_invperm"}
    found = weight("exl2", tensors)
    assert found.logical(index_of(tensors)["a.q_weight"]) is None
    assert "order" not in found.scheme.optional


@pytest.mark.parametrize(("words", "bits"), [(48, 3), (40, 0), (96, 6)])
def test_the_last_axis_has_the_width(words: int, bits: int) -> None:
    tensors: Tensors = EXL3 | {"a.trellis": ("I16", (4, 2, words))}
    assert weight("exl3", tensors).scheme.bits == bits


def test_old_signs_are_bits() -> None:
    tensors: Tensors = {
        "a.trellis": ("I16", (4, 2, 48)),
        "a.su": ("I16", (4,)),
        "a.sv": ("I16", (2,)),
    }
    found = weight("exl3", tensors)
    assert {"input_signs", "output_signs"} <= set(found.scheme.optional)
    assert {"input_signs", "output_signs"} & set(
        weight("exl3", EXL3).scheme.optional
    ) == (set())


def test_values_are_not_decoded() -> None:
    found = weight("exl3", EXL3)
    parts = {
        part.role: Stored(
            part.dtypes[0], np.zeros(part.shape, storage_dtype(part.dtypes[0]))
        )
        for part in found.parts((32, 64))
        if not part.optional
    }
    with pytest.raises(BackendError, match="are not decoded"):
        dequantize(found.scheme, parts, (32, 64))


@pytest.mark.parametrize("dialect", ["exl2", "exl3"])
def test_nothing_is_written(dialect: str) -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(dialect).emit(Manifest(dialect))
