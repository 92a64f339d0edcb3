"""Rows under any leading axes as one table, whose width may be zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmanifest.packings.arrays import AnyArray


def as_table(array: AnyArray) -> AnyArray:
    """Arrange `(..., n)` as `(rows, n)`; copies only where no view is possible."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
