"""What is written, the safetensors library reads back unchanged."""

from __future__ import annotations

import tempfile
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.dtypes import DTYPES
from qmanifest.testing.strategies import tensor_names, tensor_tables
from qmanifest.writing.shards import (
    OutputTensor,
    plan_shards,
    planned_header_bytes,
    write_shard,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.testing.tables import RawTensor

deserialize: Callable[[bytes], list[tuple[str, dict[str, Any]]]]
deserialize = safetensors.deserialize
METADATA = st.dictionaries(tensor_names(), tensor_names(), max_size=2)


def specs_of(table: dict[str, RawTensor]) -> list[OutputTensor]:
    return [
        OutputTensor(name, dtype, shape) for name, (dtype, shape, _) in table.items()
    ]


@given(table=tensor_tables(), metadata=METADATA)
def test_library_reads_back_what_was_written(
    table: dict[str, RawTensor], metadata: dict[str, str]
) -> None:
    (plan,) = plan_shards(specs_of(table))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / plan.file
        write_shard(Path(folder), plan, lambda spec: [table[spec.name][2]], metadata)
        content = path.read_bytes()
        with safetensors.safe_open(path, "np") as opened:
            assert (opened.metadata() or {}) == metadata
    read = {
        name: (tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"]))
        for name, tensor in deserialize(content)
    }
    assert read == table
    data = sum(len(each) for _, _, each in table.values())
    assert len(content) == planned_header_bytes(plan.tensors, metadata) + data


@given(table=tensor_tables(max_size=12), limit=st.integers(1, 300))
def test_plan_holds_every_tensor_once_within_the_limit(
    table: dict[str, RawTensor], limit: int
) -> None:
    specs = specs_of(table)
    plans = plan_shards(specs, limit)
    order = [spec for plan in plans for spec in plan.tensors]
    assert sorted(order, key=specs.index) == specs
    for plan in plans:
        assert plan.tensors or not table
        assert plan.nbytes <= limit or len(plan.tensors) == 1
        begins = accumulate((spec.nbytes for spec in plan.tensors), initial=0)
        for spec, begin in zip(plan.tensors, begins, strict=False):
            assert begin * 8 % max(DTYPES[spec.dtype].bits, 8) == 0
    for left, right in pairwise(plans):
        first = min(right.tensors, key=specs.index)
        assert left.nbytes + first.nbytes > limit
