"""MLX on the CPU as a peer; it computes on one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx
import numpy as np

if TYPE_CHECKING:
    from benchmarks.ours import Packed

    from qmanifest.packings.arrays import AnyArray, Float32, Stored

mx.set_default_device(mx.cpu)


def from_stored(stored: Stored) -> Any:  # noqa: ANN401 - mlx has no types
    """Copy a stored tensor."""
    if stored.dtype == "BF16":
        return mx.array(stored.array).view(mx.bfloat16)
    return mx.array(stored.array)


def from_float32(array: Float32) -> Any:  # noqa: ANN401 - likewise
    """Copy an array."""
    return mx.array(array)


def quantize(weight: Any, bits: int, group_size: int) -> Any:  # noqa: ANN401 - likewise
    """Quantize, and wait for it: words, scales and biases."""
    made = mx.quantize(weight, group_size=group_size, bits=bits)
    mx.eval(*made)
    return made


def dequantize(parts: Any, bits: int, group_size: int) -> Any:  # noqa: ANN401 - likewise
    """Rebuild a weight, and wait for it."""
    words, scales, biases = parts
    made = mx.dequantize(words, scales, biases, group_size, bits)
    mx.eval(made)
    return made


def quantize_small(weight: Any, mode: str) -> Any:  # noqa: ANN401 - likewise
    """Quantize to small floats, and wait for it: words and scales."""
    made = mx.quantize(weight, mode=mode)
    mx.eval(*made)
    return made


def dequantize_small(parts: Any, mode: str, dtype: str) -> Any:  # noqa: ANN401 - likewise
    """Rebuild a weight of small floats in `dtype`, F32 or BF16, and wait for it."""
    to = {"F32": mx.float32, "BF16": mx.bfloat16}[dtype]
    words, scales = parts
    made = mx.dequantize(words, scales, mode=mode, dtype=to)
    mx.eval(made)
    return made


def matmul(x: Any, parts: Any, bits: int, group_size: int) -> Any:  # noqa: ANN401 - likewise
    """Multiply `x @ weight.T`, and wait for it."""
    words, scales, biases = parts
    made = mx.quantized_matmul(x, words, scales, biases, True, group_size, bits)  # noqa: FBT003 - by place, as the others
    mx.eval(made)
    return made


def parts_of(packed: Packed) -> Any:  # noqa: ANN401 - likewise
    """Copy what we packed, which is what MLX would have packed."""
    return (
        mx.array(packed.words),
        from_stored(packed.scales),
        from_stored(packed.biases),
    )


def bits_of(array: Any) -> AnyArray:  # noqa: ANN401 - likewise
    """Give the bits of an array as unsigned integers, to compare them exactly."""
    width = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32}[array.dtype.size]
    return np.array(array.view(width))
