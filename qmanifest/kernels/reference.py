"""The kernels that are written to be read: those that every other set is judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.backends import reference
from qmanifest.kernels.base import PackedParts, result_array, result_dtype
from qmanifest.packings import u32_lsb
from qmanifest.packings.arrays import Stored, from_float32, row_blocks
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import AnyArray
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape


class ReferenceKernels:
    """Hands everything to `writing.quantize`, `packings` and `backends.reference`."""

    name: Final = "reference"

    def quantize(
        self,
        weight: Stored,
        bits: int,
        group_size: int,
        scale_dtype: str | None = None,
    ) -> PackedParts:
        """Quantize and pack: see `Kernels.quantize`."""
        made = quantize_affine(weight, bits, group_size, scale_dtype)
        words = u32_lsb.pack(made.codes, bits)
        return PackedParts(words, made.scales, made.biases)

    def dequantize(
        self,
        scheme: Scheme,
        parts: Mapping[str, Stored],
        shape: Shape,
        out: AnyArray | None = None,
        dtype: str | None = None,
    ) -> Stored:
        """Rebuild a weight: see `Kernels.dequantize`."""
        dtype = result_dtype(parts, dtype)
        array = result_array(dtype, shape, out)
        weight = reference.dequantize(scheme, parts, shape).reshape(-1)
        flat = array.reshape(-1)
        for block in row_blocks(weight.size, 1):
            flat[block] = from_float32(weight[block], dtype).array
        return Stored(dtype, array)


KERNELS: Final[Kernels] = ReferenceKernels()
