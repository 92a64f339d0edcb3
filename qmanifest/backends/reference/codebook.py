"""Codes that look a value up in a table: `w = table[code] * absmax`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qmanifest.backends.reference.quant_state import read_quant_state
from qmanifest.backends.reference.rounding import rounded, values_of
from qmanifest.errors import BackendError
from qmanifest.packings import unpack
from qmanifest.packings.arrays import to_float32
from qmanifest.packings.spreading import blocks
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.packings.arrays import Float32, Stored
    from qmanifest.schemes import Codebook
    from qmanifest.tensors import Shape


def codebook_decoder(
    scheme: Codebook, parts: Mapping[str, Stored], shape: Shape
) -> Callable[[slice], Float32]:
    """Prepare to rebuild rows of a weight, `(rows, in_features)`.

    Products are rounded to float32, then to the dtype that `quant_state` names.

    Raises:
        BackendError: `quant_map` is another table than the scheme's, or `quant_state`
            says something else of the weight.
        PackingError: the codes are none of the layout's.

    """
    state = read_quant_state(parts["quant_state"], scheme, shape)
    values = values_of(scheme.table)
    if not np.array_equal(to_float32(parts["quant_map"]), values):
        raise BackendError(f"quant_map is not the table of {scheme.table}")
    rows, words = math.prod(shape[:-1]), parts["codes"].array
    codes = unpack(scheme.pack, words, scheme.bits, shape).reshape(rows, shape[-1])
    absmax = _absmax(scheme, parts, state.offset)
    scales = blocks(absmax, Spread(0, scheme.block_size, "flat"), shape)

    def rebuild(block: slice) -> Float32:
        with np.errstate(over="ignore", invalid="ignore"):
            weight = values[codes[block]] * scales.of_rows(block)
        return rounded(weight, state.dtype)

    return rebuild


def _absmax(scheme: Codebook, parts: Mapping[str, Stored], offset: float) -> Float32:
    """Find the largest magnitude of every block."""
    stored = parts["scales"]
    if not scheme.nested:
        return to_float32(stored)
    values = to_float32(parts["nested_quant_map"])[stored.array]
    scales = np.repeat(to_float32(parts["nested_absmax"]), scheme.nested)
    with np.errstate(over="ignore", invalid="ignore"):
        return values * scales[: stored.array.size] + np.float32(offset)
