"""What every dialect promises is checked: kept promises are clean, damage is not."""

from __future__ import annotations

import math
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.checkpoints_drawn import Promised, checkpoints
from support.lowering import index_of, lower
from support.schemes_drawn import DRAWN

from qmanifest.dialects import DIALECTS
from qmanifest.families import OWN_FP8
from qmanifest.findings import Severity
from qmanifest.testing import RawTensor
from qmanifest.testing.content import content

Tensors = dict[str, RawTensor]
FOUNDING: Final = ("tensor-map", "q4-lists", "mlx")
"""`test_check_laws` has the same of these."""
UNDRAWN: Final = ("vptq", "spqr", "higgs")
"""Layers that each have a document of their own, or parts as long as it says."""
DTYPES: Final = ("F16", "F32", "U8", "I8", "I16", "I32", "I64", "U32", "F8_E4M3")
REPORTED: Final = (Severity.ERROR, Severity.WARNING)

each_dialect = pytest.mark.parametrize("dialect", DRAWN)
cases = st.data()


def test_every_dialect_is_drawn() -> None:
    every = {dialect.id for dialect in DIALECTS}
    assert every == {*DRAWN, *FOUNDING, *UNDRAWN}


@each_dialect
@given(data=cases)
def test_what_is_as_promised_is_clean(dialect: str, data: st.DataObject) -> None:
    promised = data.draw(checkpoints(dialect))
    report = promised.checked()
    assert [each for each in report.findings if each.severity in REPORTED] == []
    assert report.weights == len(promised.weights)


@each_dialect
@given(data=cases)
def test_what_is_stored_is_what_was_meant(dialect: str, data: st.DataObject) -> None:
    promised = data.draw(checkpoints(dialect))
    (component,) = lowered(promised, promised.tensors).components
    found = {weight.name: weight.scheme for weight in component.weights}
    assert found.keys() == {weight.name for weight, _ in promised.weights}
    for weight, shape in promised.weights:
        if weight.scheme.kind != "opaque":
            assert str(found[weight.name]) == str(weight.scheme)
        own = {part.name: part for part in weight.parts(shape)}
        for role, dtypes, size in found[weight.name].parts(shape):
            part = own.get(weight.names.name(weight.name, role))
            if part is None or part.name not in promised.tensors:
                continue
            if size is not None:
                assert part.shape in {size, None}
            assert part.dtypes[0] in dtypes


@each_dialect
@given(data=cases)
def test_no_damage_is_silent(dialect: str, data: st.DataObject) -> None:
    promised = data.draw(checkpoints(dialect))
    weight, shape = data.draw(st.sampled_from(promised.weights))
    assume(weight.names != OWN_FP8.names)  # `.scale` alone may be that of a norm
    stored = [part for part in weight.parts(shape) if part.name in promised.tensors]
    part = data.draw(st.sampled_from(stored))
    tensors = dict(promised.tensors)
    damaged = damage(data, part.name, promised.tensors[part.name])
    if damaged is None:
        assume(not part.optional)
        del tensors[part.name]
    else:
        tensors[part.name] = damaged
    report = promised.checked(tensors)
    if not any(each.severity in REPORTED for each in report.findings):
        assert is_kept(promised, tensors)


def damage(data: st.DataObject, name: str, tensor: RawTensor) -> RawTensor | None:
    """Draw what is stored instead of a tensor; None for nothing."""
    dtype, shape, _ = tensor
    kind = data.draw(st.sampled_from(["drop", "dtype", "shape"]))
    if kind == "drop":
        return None
    if kind == "dtype":
        dtype = data.draw(st.sampled_from([each for each in DTYPES if each != dtype]))
    else:
        sizes = [(*shape, 2), (1, *shape), (math.prod(shape),), shape[:-1], (3,)]
        if shape:
            sizes += [(*shape[:-1], 2 * shape[-1]), (shape[0] + 1, *shape[1:])]
        shape = data.draw(st.sampled_from([each for each in sizes if each != shape]))
    return dtype, shape, content(name, dtype, shape, positive=True)


def lowered(promised: Promised, tensors: Tensors) -> Any:  # noqa: ANN401 - a manifest
    """Lower the document against tensors."""
    shown = {name: (dtype, size) for name, (dtype, size, _) in tensors.items()}
    index = index_of(shown)
    return lower(promised.dialect, promised.document, index).manifest


def is_kept(promised: Promised, tensors: Tensors) -> bool:
    """Whether tensors are of other shapes than were meant, and yet as promised.

    Every weight is found, and its parts are those of the shape that its codes show.
    """
    (component,) = lowered(promised, tensors).components
    found = {weight.name: weight for weight in component.weights}
    return found.keys() == {weight.name for weight, _ in promised.weights} and all(
        any(fits(weight, shape, tensors) for shape in shapes(weight, tensors))
        for weight in found.values()
    )


def shapes(weight: Any, tensors: Tensors) -> list[Any]:  # noqa: ANN401 - a weight
    """List the logical shapes that a weight may have, by its codes."""
    _, size, data = tensors[weight.codes]
    flat = (len(data) * 8 // weight.scheme.bits,) if weight.scheme.bits else ()
    return [weight.scheme.logical(size), flat]


def fits(weight: Any, shape: Any, tensors: Tensors) -> bool:  # noqa: ANN401 - a weight
    """Whether every part is stored as it has to be for a logical shape."""
    return all(
        part.optional
        if part.name not in tensors
        else tensors[part.name][0] in part.dtypes
        and part.shape in {None, tensors[part.name][1]}
        for part in weight.parts(shape)
    )
