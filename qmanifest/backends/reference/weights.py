"""Rebuilding a weight of any scheme from its stored parts, some rows at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

import numpy as np

from qmanifest.backends.base import require_parts
from qmanifest.backends.reference.codebook import codebook_decoder
from qmanifest.backends.reference.groups import row_decoder
from qmanifest.backends.reference.integers import integer_decoder
from qmanifest.backends.reference.scaled import scaled_decoder
from qmanifest.errors import BackendError
from qmanifest.packings.arrays import row_blocks
from qmanifest.schemes import ROW_SCHEMES, Codebook, Integer, Opaque, Scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.packings.arrays import Float32, Stored
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape


def dequantize(scheme: Scheme, parts: Mapping[str, Stored], shape: Shape) -> Float32:
    """Rebuild a weight from its stored parts.

    Args:
        scheme: what the parts mean.
        parts: the stored tensors by role, as in `scheme.parts`. Those that have no
            bearing on the weight may be absent.
        shape: logical, `(..., out_features, in_features)`.

    Returns:
        float32 of `shape`. Where the format's owner rounds the weight to F16 or BF16,
        it was rounded to that dtype, as described at the decoder of its scheme, and
        widening is exact.

    Raises:
        BackendError: a part is absent, of another dtype or shape, or says what cannot
            be; or values of the scheme are not decoded.
        PackingError: codes or numbers are none of those that the scheme can have.

    """
    require_parts(scheme, parts, shape)
    rows, width = math.prod(shape[:-1]), shape[-1]
    if not rows * width:
        return _nothing(shape)
    rebuild = decoder(scheme, parts, shape)
    weight = np.empty((rows, width), np.float32)
    for block in row_blocks(rows, width):
        weight[block] = rebuild(block)
    return weight.reshape(shape)


def decoder(
    scheme: Scheme, parts: Mapping[str, Stored], shape: Shape
) -> Callable[[slice], Float32]:
    """Prepare to rebuild rows of a weight that has elements.

    What `require_parts` refuses must not come here.

    Returns:
        From a slice of rows, all axes but the last counted as one, to float32
        `(rows, in_features)`; it may be called on several threads.

    Raises:
        BackendError: as `dequantize`.
        PackingError: likewise.

    """
    if isinstance(scheme, ROW_SCHEMES):
        return row_decoder(scheme, parts, shape)
    if isinstance(scheme, Integer):
        return integer_decoder(scheme, parts, shape)
    if isinstance(scheme, Scaled):
        return scaled_decoder(scheme, parts, shape)
    if isinstance(scheme, Codebook):
        return codebook_decoder(scheme, parts, shape)
    if isinstance(scheme, Opaque):
        raise BackendError(f"values of {scheme} are not decoded")
    assert_never(scheme)


def _nothing(shape: Shape) -> Float32:
    """Make a weight without elements; its other sides may be any."""
    try:
        return np.zeros(shape, np.float32)
    except ValueError as error:
        raise BackendError(f"no array has the shape {list(shape)}") from error
