"""Codes that are small numbers themselves: `w = element(code) * scale`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qmanifest.backends.reference.rounding import rounded, values_of
from qmanifest.errors import BackendError
from qmanifest.packings import unpack
from qmanifest.packings.arrays import to_float32
from qmanifest.packings.spreading import blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.packings.arrays import Float32, Stored
    from qmanifest.schemes import Scaled
    from qmanifest.tensors import Shape


def scaled_decoder(
    scheme: Scaled, parts: Mapping[str, Stored], shape: Shape
) -> Callable[[slice], Float32]:
    """Prepare to rebuild rows of a weight, `(rows, in_features)`.

    The scale meets the weight's second scale first, then the element, then the format's
    constant; each result is rounded to float32, and the last to what the scheme says.

    Raises:
        BackendError: scales are no codes of their format.
        PackingError: the codes are none of the layout's.

    """
    rows, words = math.prod(shape[:-1]), parts["codes"].array
    codes = unpack(scheme.pack, words, scheme.bits, shape).reshape(rows, shape[-1])
    scales = blocks(_scales(scheme, parts["scales"]), scheme.spread, shape)
    second = _second(scheme, parts, rows)
    values, factor = values_of(scheme.element), np.float32(scheme.factor)
    dtype = {"float32": "F32", "scale": parts["scales"].dtype}.get(
        scheme.rounds, "BF16"
    )

    def rebuild(block: slice) -> Float32:
        scale = scales.of_rows(block)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if scheme.global_scale == "multiply":
                scale = scale * second[block]
            elif scheme.global_scale == "divide":
                scale = scale / second[block]
            weight = values[codes[block]] * scale
            if scheme.factor != 1:
                weight = weight * factor
            return rounded(weight, dtype)

    return rebuild


def _scales(scheme: Scaled, stored: Stored) -> Float32:
    """Find the value of every stored scale."""
    if scheme.scale_format == "float":
        return to_float32(stored)
    if stored.array.dtype != np.uint8:
        raise BackendError(f"{stored.dtype} scales are no {scheme.scale_format} bytes")
    return values_of(scheme.scale_format)[stored.array]


def _second(scheme: Scaled, parts: Mapping[str, Stored], rows: int) -> Float32:
    """Give the second scale of every row, `(rows, 1)`."""
    if scheme.global_scale == "none":
        return np.ones((1, 1), np.float32)
    numbers = to_float32(parts["global_scale"]).reshape(-1, 1)
    if not len(numbers) or rows % len(numbers):
        raise BackendError(f"{len(numbers)} second scales for {rows} rows")
    return np.repeat(numbers, rows // len(numbers), axis=0)
