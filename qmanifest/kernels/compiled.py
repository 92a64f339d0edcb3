"""The kernels that numba compiles: several times as fast as mlx, and bit for bit it.

The first call with a dtype compiles for some seconds; `jit` says where that is kept.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from qmanifest.kernels import base
from qmanifest.kernels.coding import streams
from qmanifest.kernels.fast import FastKernels
from qmanifest.kernels.microscales import code_values, group_scales
from qmanifest.kernels.native_quantize import quantize_groups, steps_of
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, storage_dtype
from qmanifest.schemes import Affine, Microscaling
from qmanifest.threads import over_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.kernels.base import Kernels
    from qmanifest.kernels.coding import Coding
    from qmanifest.packings.arrays import AnyArray
    from qmanifest.schemes import Scheme

Range: TypeAlias = tuple[int, int]
"""The first group, and the one after the last."""

_SEEN_AS: Final = {"F32": np.float32, "BF16": np.uint16, "F16": np.int16}
"""The numpy dtypes by which compiled kernels tell floats apart."""


def _seen(stored: Stored) -> AnyArray:
    """View floats flat, in the dtype by which kernels know them."""
    flat = np.ascontiguousarray(stored.array).reshape(-1)
    return flat.view(_SEEN_AS[stored.dtype])


def _quantize(
    weight: Stored, bits: int, group_size: int, scale: str
) -> base.PackedParts | None:
    """Quantize a stream of groups; None where a group is not finite."""
    values, steps = _seen(weight), steps_of(bits)
    *rows, width = weight.shape
    words = np.empty((*rows, width * bits // 32), np.uint32)
    octets = words.reshape(-1).view(np.uint8)
    numbers = (*rows, width // group_size)
    scales, biases = (
        Stored(scale, np.empty(numbers, storage_dtype(scale))) for _ in range(2)
    )
    targets = _seen(scales), _seen(biases)

    def work(groups: Range) -> bool:
        sizes = (bits, group_size)
        return quantize_groups(values, octets, *targets, sizes, steps, groups)

    regular = over_groups(work, values.size // group_size, group_size)
    if not regular or not base.are_finite(scales, biases):
        return None
    return base.PackedParts(words, scales, biases)


def _rebuild(scheme: Scheme, parts: Mapping[str, Stored], target: Stored) -> bool:
    """Rebuild a weight into the target; say whether that could be done."""
    if isinstance(scheme, Affine):
        return _affine(scheme, parts, target)
    assert isinstance(scheme, Microscaling)
    return _microscaling(scheme, parts, target)


@cache
def _affine_kernel(
    bits: int, group_size: int, scale: str, written: str, *, streamed: bool
) -> tuple[Coding, Callable[..., int]] | None:
    """Compile, or load, the kernel of affine groups; None where this CPU has none."""
    from qmanifest.kernels.compiled_dequantize import rebuild  # noqa: PLC0415 - numba
    from qmanifest.kernels.cpu import coding_of  # noqa: PLC0415 - likewise

    coding = coding_of(bits, group_size, scale)
    return coding and (coding, rebuild(coding, written, streamed=streamed))


def _affine(scheme: Affine, parts: Mapping[str, Stored], target: Stored) -> bool:
    """Rebuild affine codes; say whether that could be done."""
    scales, biases = parts["scales"], parts["biases"]
    direct = target.dtype in {"F32", scales.dtype}
    written = target.dtype if direct else "F32"
    array = target.array
    kernel = _affine_kernel(
        *(scheme.bits, scheme.group_size, scales.dtype, written),
        streamed=direct and streams(array.ctypes.data, array.nbytes),
    )
    if kernel is None:
        return False
    coding, run = kernel
    each, finite = (_seen(scales), _seen(biases)), base.EXPONENTS[scales.dtype]

    def work(octets: AnyArray, values: AnyArray, some: slice, groups: Range) -> bool:
        first, count = groups[0], groups[1] - groups[0]
        ahead = ((some.start or 0) + first) * coding.scale_bytes
        largest = run(
            values.ctypes.data + first * coding.group_size * values.itemsize,
            octets.ctypes.data + first * coding.group_bytes,
            *(numbers.ctypes.data + ahead for numbers in each),
            count,
        )
        return largest < finite

    return _by_groups(work, scheme, parts, target, direct=direct)


def _microscaling(
    scheme: Microscaling, parts: Mapping[str, Stored], target: Stored
) -> bool:
    """Rebuild small floats; say whether that could be done."""
    from qmanifest.kernels.compiled_dequantize import look_up_groups  # noqa: PLC0415 - numba

    scales = group_scales(scheme, parts, target.shape)
    if scales is None:
        return False
    table = code_values(scheme)

    def work(octets: AnyArray, values: AnyArray, some: slice, groups: Range) -> bool:
        sizes, steps = (scheme.bits, scheme.group_size), steps_of(scheme.bits)
        look_up_groups(octets, scales[some], table, values, sizes, steps, groups)
        return True

    direct = target.dtype == "F32"
    return _by_groups(work, scheme, parts, target, direct=direct)


def _by_groups(
    work: Callable[[AnyArray, AnyArray, slice, Range], bool],
    scheme: Scheme,
    parts: Mapping[str, Stored],
    target: Stored,
    *,
    direct: bool,
) -> bool:
    """Rebuild all groups: straight into the target, or by blocks of float32."""
    octets = np.ascontiguousarray(parts["codes"].array).reshape(-1).view(np.uint8)
    size = scheme.group_size
    seen = _seen(target)
    flat = target.array.reshape(-1)

    def whole(groups: Range) -> bool:
        return work(octets, seen, slice(None), groups)

    def by_blocks(groups: Range) -> bool:
        for block in row_blocks(groups[1] - groups[0], size):
            first, last = groups[0] + block.start, groups[0] + block.stop
            values = np.empty((last - first) * size, np.float32)
            stream = octets[first * size * scheme.bits // 8 :]
            if not work(stream, values, slice(first, last), (0, last - first)):
                return False
            rounded = from_float32(values, target.dtype)
            flat[first * size : last * size] = rounded.array
        return True

    return over_groups(whole if direct else by_blocks, flat.size // size, size)


KERNELS: Final[Kernels] = FastKernels("compiled", _quantize, _rebuild)
