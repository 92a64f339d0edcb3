"""Weights rebuilt as a whole, by blocks, by experts: the same to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.formats import FORMATS, Format
from support.golden import golden
from support.models import save

from qmanifest.backends import reference
from qmanifest.converting import ahead
from qmanifest.converting.whole import Whole
from qmanifest.errors import WriteError
from qmanifest.packings.arrays import Stored, to_bytes
from qmanifest.reading.stores import open_stores
from qmanifest.writing.header import OutputTensor

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.tensors import Shape

Parts = dict[str, Stored]
ONE_OF_EACH = {f"{row.scheme.kind} {row.scheme.pack}": row for row in FORMATS}
each_format = pytest.mark.parametrize("row", ONE_OF_EACH.values(), ids=ONE_OF_EACH)


def parts_of(row: Format) -> Parts:
    vectors = golden(row.file)
    return {role: vectors[key] for role, key in row.parts.items()}


def whole(
    folder: Path,
    row: Format,
    parts: Parts,
    shape: Shape,
    *,
    turned: bool = False,
    inputs: Stored | None = None,
) -> Whole:
    """Store parts, and plan to rebuild them in float32."""
    tensors = parts | ({"inputs": inputs} if inputs else {})
    store = open_stores(save(folder, tensors)).merged
    assert store is not None
    written = (*shape[:-2], shape[-1], shape[-2]) if turned else shape
    return Whole(
        store.root,
        OutputTensor("m.weight", "F32", written),
        row.scheme,
        shape,
        {role: store.index[role] for role in parts},
        store.index["inputs"] if inputs else None,
        turned,
    )


def made(plan: Whole) -> bytes:
    """Rebuild every block, on several threads, and put them together."""
    return b"".join(bytes(block) for block in ahead.in_order([plan.work()]))


def expected(row: Format, parts: Parts, shape: Shape) -> bytes:
    weight = reference.dequantize(row.scheme, parts, shape)
    return to_bytes(Stored("F32", weight))


@each_format
@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_blocks_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Format, rows: int
) -> None:
    monkeypatch.setattr(ahead, "BLOCK", 4 * row.shape[-1] * rows)
    parts = parts_of(row)
    plan = whole(tmp_path, row, parts, row.shape)
    assert made(plan) == expected(row, parts, row.shape)
    blocks = len(plan.work().blocks)
    assert blocks == (row.shape[0] if len(row.shape) > 2 else -(-row.shape[0] // rows))


@each_format
def test_stacks_of_experts(tmp_path: Path, row: Format) -> None:
    if len(row.shape) != 2:
        pytest.skip("a stack as it is")
    one, shape = parts_of(row), (3, *row.shape)
    sizes = {role: size for role, _, size in row.scheme.parts(shape)}
    if any(sizes[role] is None or (sizes[role] or ())[:1] != (3,) for role in one):
        pytest.skip("the format has no stacks")
    parts = {
        role: Stored(part.dtype, np.stack([part.array] * 3).reshape(sizes[role] or ()))
        for role, part in one.items()
    }
    plan = whole(tmp_path, row, parts, shape)
    assert len(plan.work().blocks) == 3
    assert made(plan) == 3 * expected(row, one, row.shape)


@each_format
def test_inputs_first(tmp_path: Path, row: Format) -> None:
    parts = parts_of(row)
    plan = whole(tmp_path, row, parts, row.shape, turned=True)
    weight = reference.dequantize(row.scheme, parts, row.shape)
    swapped = np.ascontiguousarray(np.swapaxes(weight, -1, -2))
    assert made(plan) == to_bytes(Stored("F32", swapped))


@each_format
def test_scaled_inputs(tmp_path: Path, row: Format) -> None:
    parts = parts_of(row)
    numbers = np.linspace(-1, 1, row.shape[-1], dtype=np.float32)
    plan = whole(tmp_path, row, parts, row.shape, inputs=Stored("F32", numbers))
    weight = reference.dequantize(row.scheme, parts, row.shape) * numbers
    assert made(plan) == to_bytes(Stored("F32", weight))


def test_nothing_to_rebuild(tmp_path: Path) -> None:
    row = next(each for each in FORMATS if each.file == "torchao_fp8wo")
    parts = {r: Stored(p.dtype, p.array[:0]) for r, p in parts_of(row).items()}
    plan = whole(tmp_path, row, parts, (0, row.shape[-1]))
    assert made(plan) == b""


def test_the_weight_is_named_where_its_parts_cannot_be(tmp_path: Path) -> None:
    row = next(each for each in FORMATS if "actorder" in each.file)
    parts = parts_of(row)
    parts["g_idx"] = Stored("I32", np.full(row.shape[-1], -7, np.int32))
    with pytest.raises(WriteError, match=r"'m\.weight': g_idx has groups -7"):
        made(whole(tmp_path, row, parts, row.shape))
