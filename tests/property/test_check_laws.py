"""A checkpoint that is as promised is clean, and any one change of it is an error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.check import Report, check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.dialects import dialect_named
from qmanifest.dtypes import nbytes
from qmanifest.findings import Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling
from qmanifest.testing import strategies, write_raw
from qmanifest.testing.content import content

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme
    from qmanifest.testing import RawTensor

Mutation = Literal["bits", "dtype", "drop", "rename"]
MUTATIONS: tuple[Mutation, ...] = ("bits", "dtype", "drop", "rename")
OTHER_DTYPE = {"F16": "BF16", "BF16": "F32", "U32": "I32", "U8": "F16", "F32": "F16"}
each_dialect = pytest.mark.parametrize("dialect", ["tensor-map", "mlx"])

lists_of_weights = st.lists(strategies.weights(), min_size=1, max_size=4).map(
    lambda drawn: [
        replace(weight, name=f"net.{number}.{weight.name}")
        for number, weight in enumerate(drawn)
    ]
)
"""Weights of different layers: in one layer, a name may be another's new name."""


def stored(weight: Weight) -> dict[str, RawTensor]:
    """Store a weight just as it promises."""
    made = {}
    for part in weight.parts():
        assert part.shape is not None
        dtype = part.dtypes[0]
        letters = range(1, 120)  # in every format of a byte finite, and not zero
        data = content(part.name, dtype, part.shape, alphabet=letters)
        made[part.name] = dtype, part.shape, data
    return made


def checked(
    dialect: str, weights: list[Weight], tensors: Mapping[str, RawTensor]
) -> Report:
    """Write a checkpoint of tensors that promises the weights, and check it."""
    chosen = dialect_named(dialect)
    manifest = Manifest(dialect, components=(Component("", tuple(weights)),))
    document = chosen.emit(manifest).to_json()
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = json.dumps(chosen.wrap(document))
        (folder / chosen.file_name).write_text(text, encoding="utf-8")
        write_raw(folder / "model.safetensors", tensors)
        return check(open_checkpoint(folder), deep=True)


def all_stored(weights: list[Weight]) -> dict[str, RawTensor]:
    return {name: t for each in weights for name, t in stored(each).items()}


def other_scheme(draw: st.DrawFn, scheme: Scheme) -> Scheme:
    """Draw a scheme of other bits, in groups of the same size where there are any."""
    if isinstance(scheme, Affine):
        widths = [bits for bits in strategies.AFFINE_BITS if bits != scheme.bits]
        return replace(scheme, bits=draw(st.sampled_from(widths)))
    assert isinstance(scheme, Microscaling)
    element = "e2m1" if scheme.element == "e4m3" else "e4m3"
    return replace(scheme, element=element)


@st.composite
def mutated(
    draw: st.DrawFn, mutation: Mutation, weight: Weight
) -> tuple[dict[str, RawTensor], set[str]]:
    """Store a weight with one thing wrong; also the names that are concerned."""
    tensors = stored(weight)
    if mutation == "bits":
        wrong = replace(weight, scheme=other_scheme(draw, weight.scheme))
        return stored(wrong), set(tensors)
    name = draw(st.sampled_from(list(tensors)))
    dtype, shape, _ = tensor = tensors.pop(name)
    concerned = {name, *tensors}
    if mutation == "dtype":
        other = OTHER_DTYPE[dtype]
        tensors[name] = other, shape, bytes(nbytes(other, shape) * [1])
    elif mutation == "rename":
        tensors[f"{name}x"] = tensor
        concerned.add(f"{name}x")
    return tensors, concerned


@each_dialect
@given(weights=lists_of_weights)
def test_what_is_promised_is_clean(dialect: str, weights: list[Weight]) -> None:
    report = checked(dialect, weights, all_stored(weights))
    assert not report.reaches(Severity.WARNING), report.findings
    assert report.weights == len(weights)


@each_dialect
@pytest.mark.parametrize("mutation", MUTATIONS)
@given(data=st.data(), weights=lists_of_weights)
def test_one_change_is_an_error_that_names_it(
    dialect: str, mutation: Mutation, data: st.DataObject, weights: list[Weight]
) -> None:
    victim, *others = weights
    tensors, concerned = data.draw(mutated(mutation, victim))
    report = checked(dialect, weights, {**all_stored(others), **tensors})
    errors = [each for each in report.findings if each.severity is Severity.ERROR]
    named = {at.tensor for error in errors for at in error.at}
    assert named & concerned, report.findings
    assert not named - concerned - {None}, "only what was changed is accused"
