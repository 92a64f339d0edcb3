"""What a conversion computes: the one place where it meets the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.converting.dense import rounded
from qmanifest.layouts import U32_LSB
from qmanifest.packings import PACKINGS
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Buffer

    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Affine, Scheme
    from qmanifest.tensors import Shape
    from qmanifest.writing.header import OutputTensor


def quantize(
    kernels: Kernels, weight: Stored, scheme: Affine, dtype: str
) -> dict[str, Buffer]:
    """Quantize rows of a weight, and give the bytes of their parts by role.

    Args:
        kernels: what computes.
        weight: `(rows, in_features)`; not kept.
        scheme: affine, with its packing.
        dtype: of scales and biases.

    Raises:
        PackingError: a value is not finite, or a group spans more than `dtype` holds.

    """
    bits, group_size = scheme.bits, scheme.group_size
    if scheme.pack == U32_LSB.id:  # all that kernels pack
        parts = kernels.quantize(weight, bits, group_size, dtype)
        codes, scales, biases = parts.words.data, parts.scales, parts.biases
    else:
        made = quantize_affine(weight, bits, group_size, dtype)
        codes = PACKINGS[scheme.pack].pack(made.codes, bits).data
        scales, biases = made.scales, made.biases
    return {"codes": codes, "scales": scales.array.data, "biases": biases.array.data}


def dense_bytes(
    kernels: Kernels,
    output: OutputTensor,
    scheme: Scheme,
    parts: Mapping[str, Stored],
    shape: Shape,
) -> Buffer:
    """Rebuild rows of a weight, and give their bytes, rounded half to even.

    Args:
        kernels: what computes.
        output: the dense weight; its dtype is F32, F16 or BF16.
        scheme: what the parts mean.
        parts: the rows' parts by role; not kept.
        shape: `(rows, in_features)`.

    Raises:
        BackendError: a part is absent, or of another dtype or shape.
        WriteError: a finite value does not fit the dtype.

    """
    dtype = output.dtype
    if dtype in {"F32", parts["scales"].dtype}:  # as rebuilt: nothing can be lost
        return kernels.dequantize(scheme, parts, shape, dtype=dtype).array.data
    values = kernels.dequantize(scheme, parts, shape, dtype="F32").array
    return rounded(output.name, values, dtype)
