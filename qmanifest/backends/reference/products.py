"""Products of what was rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from qmanifest.packings.arrays import AnyArray

Float64: TypeAlias = npt.NDArray[np.float64]


def matmul(x: AnyArray, weight: AnyArray) -> Float64:
    """Multiply `x @ weight.T` in float64.

    Args:
        x: `(..., in_features)`.
        weight: `(out_features, in_features)`.

    Returns:
        `(..., out_features)` float64. The products are exact where both factors are
        float32 or narrower; their sum has float64's rounding error, in no fixed order.

    """
    return x.astype(np.float64) @ weight.astype(np.float64).T
