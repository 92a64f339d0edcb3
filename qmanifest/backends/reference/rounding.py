"""Rounding what was computed in float32, and looking values up in number formats."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from qmanifest.elements import ELEMENTS
from qmanifest.packings.arrays import from_float32, to_float32

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Float32


def rounded(values: Float32, dtype: str) -> Float32:
    """Round to F16, BF16 or F32, half to even, and widen again."""
    return values if dtype == "F32" else to_float32(from_float32(values, dtype))


@cache
def values_of(element: str) -> Float32:
    """Give the value of every code of a number format."""
    values = np.array(ELEMENTS[element].values, np.float32)
    values.flags.writeable = False
    return values
