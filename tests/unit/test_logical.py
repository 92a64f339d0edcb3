"""Logical shapes: by the codes, and by what is written beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.golden_checkpoints import CHECKPOINTS, Checkpoint
from support.models import save

from qmanifest import open_checkpoint
from qmanifest.errors import BackendError
from qmanifest.families import GPTQ, PACKED
from qmanifest.logical import logical_shape, logical_shapes, said_shape
from qmanifest.manifest import Component, Weight
from qmanifest.packings.arrays import Stored
from qmanifest.reading.stores import open_stores
from qmanifest.schemes import NO_ZERO, Integer
from qmanifest.schemes.qweight import awq_gemm
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.reading.stores import Store
    from qmanifest.tensors import Shape


def packed(bits: int, group: int) -> Weight:
    """Make a weight as compressed-tensors packs it."""
    scheme = Integer(
        *(bits, "i32-lsb", "offset", Spread(1, group), ("F32",), NO_ZERO),
        *("may-be-listed", "scale"),
    )
    return Weight("a.weight", scheme, "", names=PACKED.names)


def store_of(folder: Path, **shapes: Shape | Stored) -> Store:
    """Store zeros under `a.` and the names given."""
    made = {
        f"a.{name}": shape
        if isinstance(shape, Stored)
        else Stored("I32", np.zeros(shape, np.int32))
        for name, shape in shapes.items()
    }
    store = open_stores(save(folder, made)).merged
    assert store is not None
    return store


def said(*numbers: int) -> Stored:
    return Stored("I64", np.array(numbers, np.int64))


@pytest.mark.parametrize("made", CHECKPOINTS, ids=lambda made: made.file)
def test_every_family(tmp_path: Path, made: Checkpoint) -> None:
    opened = open_checkpoint(made.write(tmp_path))
    (pair,) = opened.found()
    assert logical_shapes(*pair) == {made.weight: made.shape}


@pytest.mark.parametrize(
    ("group", "beside", "expected"),
    [
        (0, {}, (4, 74)),
        (0, {"weight_shape": said(4, 70)}, (4, 70)),
        (35, {"weight_scale": (4, 2)}, (4, 70)),
        (0, {"weight_g_idx": (71,)}, (4, 71)),
        (0, {"weight_g_idx": (60,)}, (4, 74)),
        (40, {"weight_scale": (4, 2)}, (4, 74)),
        (40, {"weight_scale": ()}, (4, 74)),
        (0, {"weight_shape": said(0, 70)}, (4, 74)),
        (0, {"weight_shape": Stored("F32", np.ones(2, np.float32))}, (4, 74)),
    ],
    ids=[
        *("codes", "shape", "groups", "g_idx", "g_idx of other codes"),
        *("groups past the end", "no groups", "no shape", "no integers"),
    ],
)
def test_padded_rows(
    tmp_path: Path, group: int, beside: dict[str, Shape | Stored], expected: Shape
) -> None:
    store = store_of(tmp_path, weight_packed=(4, 7), **beside)
    assert logical_shape(packed(3, group), store) == expected


@pytest.mark.parametrize("numbers", [(4, 80), (5, 70), (4,), (1, 4, 90)])
def test_a_shape_of_other_codes_is_refused(
    tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    store = store_of(tmp_path, weight_packed=(4, 7), weight_shape=said(*numbers))
    with pytest.raises(BackendError, match=r"'a\.weight_shape' says"):
        logical_shape(packed(3, 0), store)
    assert logical_shapes(Component("", (packed(3, 0),)), store) == {}


def test_what_is_not_there(tmp_path: Path) -> None:
    store = store_of(tmp_path, other=(1,))
    assert logical_shape(packed(3, 0), store) is None
    awq = Weight("a.weight", awq_gemm(4, 64), "", names=GPTQ.names)
    assert said_shape(awq, store) is None
    assert said_shape(packed(3, 0), store) is None
