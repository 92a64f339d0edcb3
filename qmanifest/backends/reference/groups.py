"""The schemes of MLX's layout: rows of codes, one number per group of inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from qmanifest.backends.base import AMAX_UNIT
from qmanifest.elements import ELEMENTS
from qmanifest.errors import BackendError
from qmanifest.packings import ROWS
from qmanifest.packings.arrays import Stored, from_float32, to_float32
from qmanifest.packings.base import require_codes
from qmanifest.schemes import Affine, ZeroPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.packings.arrays import Codes, Float32
    from qmanifest.schemes import Microscaling, RowScheme
    from qmanifest.tensors import Shape

Bytes: TypeAlias = npt.NDArray[np.uint8]


def row_decoder(
    scheme: RowScheme, parts: Mapping[str, Stored], shape: Shape
) -> Callable[[slice], Float32]:
    """Prepare to rebuild rows of a weight, `(rows, in_features)`.

    Raises:
        BackendError: the scheme's packing is none of rows.

    """
    packing, width = ROWS.get(scheme.pack), shape[-1]
    if packing is None:
        raise BackendError(f"{scheme} is not packed row by row")
    tables = {role: _by_row(role, part, shape) for role, part in parts.items()}

    def rebuild(block: slice) -> Float32:
        some = {
            role: Stored(part.dtype, part.array[block]) for role, part in tables.items()
        }
        codes = packing.unpack(some["codes"].array, scheme.bits, width)
        return _weights(scheme, codes, some)

    return rebuild


def dequantize_affine(
    codes: Codes,
    scales: Stored,
    biases: Stored,
    group_size: int,
    dtype: str | None = None,
) -> Stored:
    """Rebuild a weight from affine codes: `w = scale * code + bias`, per group.

    Args:
        codes: `(..., out_features, in_features)` uint8.
        scales: `(..., out_features, ceil(in_features / group_size))`, F32, F16 or BF16.
        biases: same shape and dtype as `scales`; in weight units, not a zero point.
        group_size: consecutive input features that share a scale and a bias.
        dtype: what to round the finished weight to; the scales' dtype by default.

    Returns:
        `(..., out_features, in_features)` in `dtype`. In the scales' dtype, the product
        is rounded once and the sum once, half to even; there is no fused multiply-add.
        What is too large for that dtype becomes infinite.

    Raises:
        BackendError: the shapes or dtypes do not fit each other.

    Source: https://github.com/ml-explore/mlx, `mx.dequantize`, mode "affine".

    """
    if biases.dtype != scales.dtype:
        raise BackendError(f"scales are {scales.dtype}, biases {biases.dtype}")
    scale = _per_code(to_float32(scales), codes.shape, group_size)
    bias = _per_code(to_float32(biases), codes.shape, group_size)
    with np.errstate(over="ignore", invalid="ignore"):
        # With 16-bit scales float32 holds the product exactly, so it is rounded once.
        product = from_float32(codes.astype(np.float32) * scale, scales.dtype)
        weight = from_float32(to_float32(product) + bias, scales.dtype)
    return _cast(weight, dtype)


def dequantize_zero_point(
    codes: Codes,
    scales: Stored,
    zeros: Stored,
    group_size: int,
    dtype: str | None = None,
) -> Stored:
    """Rebuild a weight from codes with zero points: `w = scale * (code - zero)`.

    Args:
        codes: `(..., out_features, in_features)` uint8.
        scales: `(..., out_features, ceil(in_features / group_size))`, F32, F16 or BF16.
        zeros: same shape as `scales`; in code units: F32, F16, BF16, or U8.
        group_size: consecutive input features that share a scale and a zero.
        dtype: what to round the finished weight to; the scales' dtype by default.

    Returns:
        `(..., out_features, in_features)` in `dtype`. Difference and product are each
        rounded to float32, then the product to the scales' dtype, half to even.

    Raises:
        BackendError: the shapes or dtypes do not fit each other.

    """
    plain = zeros.array.astype(np.float32) if zeros.dtype == "U8" else to_float32(zeros)
    scale = _per_code(to_float32(scales), codes.shape, group_size)
    zero = _per_code(plain, codes.shape, group_size)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = from_float32((codes.astype(np.float32) - zero) * scale, scales.dtype)
    return _cast(weight, dtype)


def dequantize_microscaling(
    codes: Codes,
    scales: Bytes,
    scheme: Microscaling,
    global_scale: Float32 | None = None,
) -> Float32:
    """Rebuild a weight from small floats: `w = element(code) * scale`, per group.

    Args:
        codes: `(..., out_features, in_features)` uint8, codes of `scheme.element`.
        scales: `(..., out_features, ceil(in_features / group_size))` uint8, codes of
            `scheme.scale`.
        scheme: names both number formats and the group size.
        global_scale: largest magnitude of the tensor (or of each expert, with the
            shape to broadcast against `scales`); divided by 6 * 448 it multiplies
            every scale.

    Returns:
        `(..., out_features, in_features)` float32. Every product is rounded to float32
        once; the two scales are multiplied first. An `e8m0` scale of 255 is NaN, as the
        OCP specification says, where mlx has infinity.

    Raises:
        BackendError: the shapes do not fit each other.
        PackingError: a code is none of the element's.

    Source: OCP Microscaling Formats (MX) Specification v1.0, section 6; for the global
    scale, https://github.com/ml-explore/mlx, `mx.dequantize`, mode "nvfp4".

    """
    require_codes(codes, scheme.bits)
    values = np.array(ELEMENTS[scheme.element].values, np.float32)
    scale = np.array(ELEMENTS[scheme.scale].values, np.float32)[scales]
    with np.errstate(over="ignore", invalid="ignore"):
        if global_scale is not None:
            scale = scale * (global_scale / AMAX_UNIT)
        return values[codes] * _per_code(scale, codes.shape, scheme.group_size)


def _weights(scheme: RowScheme, codes: Codes, parts: Mapping[str, Stored]) -> Float32:
    """Rebuild rows of a weight, `(rows, in_features)`."""
    scales, group_size = parts["scales"], scheme.group_size
    if isinstance(scheme, Affine):
        made = dequantize_affine(codes, scales, parts["biases"], group_size)
        return to_float32(made)
    if isinstance(scheme, ZeroPoint):
        made = dequantize_zero_point(codes, scales, parts["zeros"], group_size)
        return to_float32(made)
    amax = parts.get("global_scale")
    factor = to_float32(amax) if scheme.global_scale == "amax" and amax else None
    return dequantize_microscaling(codes, scales.array, scheme, factor)


def _by_row(role: str, part: Stored, shape: Shape) -> Stored:
    """Arrange a part as a table with a row for every row of the weight."""
    rows = math.prod(shape[:-1])
    if role != "global_scale":
        width = part.shape[-1] if part.shape else 1
        return Stored(part.dtype, part.array.reshape(rows, width))
    each = np.repeat(part.array.reshape(-1), rows // max(1, part.array.size))
    return Stored(part.dtype, each.reshape(rows, 1))


def _per_code(numbers: Float32, shape: Shape, group_size: int) -> Float32:
    """Repeat one number per group into one per code; the last group may be short."""
    expected = (*shape[:-1], -(-shape[-1] // group_size))
    if numbers.shape != expected:
        raise BackendError(
            f"codes of {list(shape)} in groups of {group_size} have one number per "
            f"group, {list(expected)}; found {list(numbers.shape)}"
        )
    return np.repeat(numbers, group_size, axis=-1)[..., : shape[-1]]


def _cast(weight: Stored, dtype: str | None) -> Stored:
    """Round a finished weight to another dtype."""
    if dtype is None or dtype == weight.dtype:
        return weight
    return from_float32(to_float32(weight), dtype)
