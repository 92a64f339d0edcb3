"""Quantize to group-wise affine codes: the codes and scales that `mx.quantize` makes.

Source: https://github.com/ml-explore/mlx, `mx.quantize`, mode "affine", version 0.32,
on the CPU: every code, scale and bias is the same bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.dtypes import FLOAT
from qmanifest.errors import PackingError
from qmanifest.layouts import U32_LSB
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, to_float32

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Float32

LEAST_SCALE: Final = np.float32(1e-7)
"""What a group of equal weights gets for a scale, so that nothing divides by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """A weight as affine codes: `w` is about `scale * code + bias`, per group."""

    codes: Codes
    """`(..., out_features, in_features)` uint8, each below `2**bits`."""
    scales: Stored
    """`(..., out_features, in_features / group_size)`; may be negative."""
    biases: Stored
    """As `scales`; in weight units."""


def quantize_affine(
    weight: Stored, bits: int, group_size: int, scale_dtype: str | None = None
) -> Quantized:
    """Quantize a weight group by group.

    All arithmetic is in float32, rounded after every operation. With more than one
    bit, the end of a group's range that is further from zero becomes its bias, and
    the scale points from there to the other end, adjusted so that zero keeps a code
    of its own. With one bit the codes are the two ends. Codes are rounded half to
    even and made with the float32 scale and bias, which are rounded to `scale_dtype`
    only afterwards.

    Args:
        weight: `(..., out_features, in_features)`, F32, F16 or BF16.
        bits: width of a code, 1 to 8.
        group_size: consecutive input features that share a scale and a bias.
        scale_dtype: F32, F16 or BF16; the weight's own dtype by default.

    Raises:
        PackingError: the arguments do not fit each other, a value is NaN or
            infinite, or a group spans more than `scale_dtype` can hold.

    """
    scale_dtype = scale_dtype or weight.dtype
    _require_fit(weight, bits, group_size, scale_dtype)
    groups = weight.array.reshape(weight.array.size // group_size, group_size)
    codes = np.empty(groups.shape, np.uint8)
    scales = np.empty((len(groups), 1), np.float32)
    biases = np.empty_like(scales)
    bad_values = 0
    for block in row_blocks(*groups.shape):
        values = to_float32(Stored(weight.dtype, groups[block]))
        scale, bias = _scale_and_bias(values, bits)
        scales[block], biases[block] = scale, bias
        if np.isfinite(scale).all():
            codes[block] = _codes(values, scale, bias, bits)
        else:
            bad_values += values.size - int(np.isfinite(values).sum())
    if bad_values:
        raise PackingError(
            f"{bad_values} of {groups.size} values are NaN or infinite; "
            "only finite weights can be quantized"
        )
    shape = (*weight.shape[:-1], weight.shape[-1] // group_size)
    return Quantized(
        codes.reshape(weight.shape),
        _rounded(scales.reshape(shape), scale_dtype),
        _rounded(biases.reshape(shape), scale_dtype),
    )


def _require_fit(weight: Stored, bits: int, group_size: int, scale_dtype: str) -> None:
    """Refuse arguments that do not fit each other."""
    for what, dtype in (("a weight", weight.dtype), ("a scale", scale_dtype)):
        if dtype not in FLOAT:
            raise PackingError(f"{what} to quantize is {'|'.join(FLOAT)}, not {dtype}")
    if bits not in U32_LSB.bits:
        raise PackingError(f"codes have {U32_LSB.bits} bits, not {bits}")
    width = weight.shape[-1] if weight.shape else 0
    if group_size < 1 or not weight.shape or width % group_size:
        raise PackingError(
            f"rows of {width} values are not whole groups of {group_size}; "
            "choose a group size that divides in_features"
        )


def _scale_and_bias(values: Float32, bits: int) -> tuple[Float32, Float32]:
    """Find the scale and the bias of groups `(n, group_size)`, each `(n, 1)`.

    Where a group has a NaN or an infinity, or spans more than float32, so does its
    scale.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        high = values.max(axis=-1, keepdims=True)
        low = values.min(axis=-1, keepdims=True)
        if bits == 1:
            span = np.maximum(high - low, LEAST_SCALE)
            # The first of equal values, not any: 0.0 and -0.0 differ as a bias.
            first = values.argmin(axis=-1, keepdims=True)
            return span, np.take_along_axis(values, first, axis=-1)
    return scale_and_bias(low, high, bits)


def scale_and_bias(low: Float32, high: Float32, bits: int) -> tuple[Float32, Float32]:
    """Find scales and biases from the ends of groups, for codes of 2 bits or more.

    Where an end is NaN or infinite, or a group spans more than float32, the scale is
    not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.maximum((high - low) / np.float32(2**bits - 1), LEAST_SCALE)
        low_end = np.abs(low) > np.abs(high)
        scale = np.where(low_end, span, -span)
        end = np.where(low_end, low, high)
        steps = np.rint(end / scale)
        zero = steps == 0
        scale = np.where(zero, scale, end / np.where(zero, np.float32(1), steps))
    return scale, np.where(zero, np.float32(0), end)


def _codes(values: Float32, scale: Float32, bias: Float32, bits: int) -> Float32:
    """Find the code nearest to every value, as float32."""
    codes = values - bias
    with np.errstate(invalid="ignore"):
        np.divide(codes, scale, out=codes)
    np.rint(codes, out=codes)
    # Equal weights above 3.4e31 get a scale of zero, and 0 / 0 for a code, which is 0.
    np.fmax(codes, np.float32(0), out=codes)
    np.minimum(codes, np.float32(2**bits - 1), out=codes)
    return codes


def _rounded(values: Float32, dtype: str) -> Stored:
    """Round scales or biases to the dtype that stores them; refuse to overflow."""
    stored = from_float32(values, dtype)
    lost = values.size - int(np.isfinite(to_float32(stored)).sum())
    if lost:
        raise PackingError(
            f"{lost} of {values.size} groups span more than a {dtype} scale can hold"
        )
    return stored
