"""Laws of byte accounting."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given

from qmanifest.dtypes import nbytes
from qmanifest.manifest import Component, Manifest
from qmanifest.sizes import Grouping, sizes_of, stored_sizes
from qmanifest.tensors import TensorIndex, TensorInfo
from qmanifest.testing.strategies import (
    affine_schemes,
    manifests,
    tensor_tables,
    weights,
)
from qmanifest.writing.shards import OutputTensor, plan_shards, write_shards

if TYPE_CHECKING:
    from qmanifest.manifest import Weight
    from qmanifest.sizes import Sizes
    from qmanifest.testing.tables import RawTensor


def one(weight: Weight) -> Sizes:
    return sizes_of(Manifest("m", components=(Component("", (weight,)),)))


@given(weight=weights(affine_schemes()))
def test_affine_bytes_are_the_formula(weight: Weight) -> None:
    sizes, shape, scheme = one(weight), weight.shape, weight.scheme
    assert shape is not None
    assert scheme.kind == "affine"
    elements = prod(shape)
    promised = Fraction(elements * scheme.bits, 8) + Fraction(
        2 * 2 * elements, scheme.group_size
    )
    assert sizes.total == promised
    assert sizes.bits_per_weight == scheme.bits + Fraction(32, scheme.group_size)
    assert sizes.quantized_parameters == elements


@pytest.mark.parametrize("by", get_args(Grouping))
@given(manifest=manifests())
def test_groups_add_up(by: Grouping, manifest: Manifest) -> None:
    sizes = sizes_of(manifest, {})
    groups = sizes.group(by)
    assert sum(group.nbytes for group in groups) == sizes.total
    assert sum(group.parameters for group in groups) == sizes.parameters
    assert sum(group.tensors for group in groups) == len(sizes.rows)
    assert len({group.label for group in groups}) == len(groups)


@given(manifest=manifests())
def test_sums_by_part_are_the_total(manifest: Manifest) -> None:
    sizes = sizes_of(manifest, {"": {}, "emb": {"n": ("F16", (4,))}})
    parts = (sizes.codes, sizes.scales, sizes.biases, sizes.other, sizes.kept)
    assert sum(parts) == sizes.total


@given(manifest=manifests())
def test_a_kept_promise_is_stored_as_promised(manifest: Manifest) -> None:
    for component in manifest.components:
        promised = sizes_of(Manifest("m", components=(component,)))
        begin, infos = 0, []
        for row in promised.rows:
            end = begin + row.nbytes
            infos.append(TensorInfo(row.tensor, row.dtype, row.shape, begin, end, "f"))
            begin = end
        assert stored_sizes(TensorIndex(infos), component).rows == promised.rows


@given(table=tensor_tables())
def test_stored_total_is_the_file_size(table: dict[str, RawTensor]) -> None:
    specs = [
        OutputTensor(name, dtype, shape) for name, (dtype, shape, _) in table.items()
    ]
    plans = plan_shards(specs, 200)
    infos = []
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder), plans, lambda spec: [table[spec.name][2]], {})
        files = {path.name: path.stat().st_size for path in Path(folder).iterdir()}
    for plan in plans:
        begin = files[plan.file] - plan.nbytes
        for spec in plan.tensors:
            end = begin + nbytes(spec.dtype, spec.shape)
            infos.append(
                TensorInfo(spec.name, spec.dtype, spec.shape, begin, end, plan.file)
            )
            begin = end
    if table:
        assert stored_sizes(TensorIndex(infos)).total == sum(files.values())
