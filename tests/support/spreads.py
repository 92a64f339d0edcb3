"""Where the number of a weight is stored, found one weight at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from qmanifest.packings.arrays import AnyArray
    from qmanifest.spreads import Form, Spread

Place = tuple[int, ...]


def place(numbers: AnyArray, spread: Spread, shape: Place, at: Place) -> Place:
    """Find where the number of one weight is stored, as each form is described."""
    *expert, row, column = at
    n, k = shape[-2:]
    down, across = row // (spread.rows or n), column // (spread.columns or k)
    flat = int(np.ravel_multi_index(at, shape))
    # https://docs.nvidia.com/cuda/cublas, "1D Block Scaling Factors Layout"
    groups = math.ceil(k / (spread.columns or k))
    tile = down // 128 * math.ceil(groups / 4) + across // 4
    in_tile = down % 32 * 16 + down % 128 // 32 * 4 + across % 4
    width = numbers.shape[-1] if numbers.ndim else 1
    places: dict[Form, Place] = {
        "table": (*expert, down, across),
        "transposed": (*expert, across, down),
        "spaced": (down, 0, across, 0),
        "vector": (down,),
        "one": (0,),
        "scalar": (),
        "flat": (flat // (spread.columns or 1),),
        "flat-column": (flat // (spread.columns or 1), 0),
        "flat-row": (0, flat % width),
        "awq-rows": (row, across),
        "awq-columns": (across, row),
        "swizzled": (*expert, *divmod(tile * 512 + in_tile, width)),
    }
    return places[spread.form]
