"""Quantizing a torch weight: by compiled kernels, in torch, or by the reference."""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from qmanifest.backends.pytorch.compiled import enabled
from qmanifest.backends.pytorch.quantizing_groups import quantize_groups
from qmanifest.backends.pytorch.weight import QuantizedWeight, tensor_of
from qmanifest.dtypes import DTYPES, FLOAT
from qmanifest.errors import BackendError
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Stored, storage_dtype
from qmanifest.schemes import Affine
from qmanifest.writing.quantize import quantize_affine

_OCTET: Final = 8


def quantize(weight: Tensor, scheme: Affine) -> QuantizedWeight:
    """Quantize a weight and pack its codes, on the device where it is.

    Codes, scales and biases are those that `qmanifest pack` writes, bit for bit: on the
    CPU by compiled kernels where the extra `fast` is installed, else by torch. Nothing
    is differentiated.

    Args:
        weight: `(..., out_features, in_features)`, float32, float16 or bfloat16.
        scheme: affine; the first of its dtypes is that of the scales and biases.

    Raises:
        BackendError: safetensors has no such dtype as the weight's, or the scheme is
            not affine.
        LayoutError: a row of codes is not a whole number of words.
        PackingError: rows are not whole groups, a value is NaN or infinite, a group
            spans more than the scales' dtype can hold, or a dtype is no such float.

    """
    if not isinstance(scheme, Affine):
        raise BackendError(f"weights are quantized as affine codes, not as {scheme}")
    weight = weight.detach()
    if _is_usual(weight, scheme):
        if weight.is_cpu and scheme.pack == "u32-lsb" and enabled():
            return _by_kernels(weight, scheme)
        made = by_torch(weight, scheme)
        if made is not None:
            return made
    return _by_reference(weight, scheme)


def _is_usual(weight: Tensor, scheme: Affine) -> bool:
    """Tell whether the arguments fit, for codes of 2 to 8 bits."""
    shape = tuple(weight.shape)
    dtypes = _code(weight.dtype) in FLOAT and scheme.scale[0] in FLOAT
    if not dtypes or not weight.numel() or not weight.ndim or scheme.group_size < 1:
        return False
    words = scheme.parts(shape)[0][2]
    fits = words is not None and not shape[-1] % scheme.group_size
    return fits and 1 < scheme.bits <= _OCTET


def by_torch(weight: Tensor, scheme: Affine) -> QuantizedWeight | None:
    """Quantize in torch; None where a scale or a bias is not finite."""
    shape = tuple(weight.shape)
    made = quantize_groups(weight.reshape(-1, scheme.group_size), scheme.bits)
    parts = {}
    roles = zip(made, scheme.parts(shape), strict=True)
    for part, (role, dtypes, size) in roles:
        assert size is not None
        if role == "codes":
            octets = part[: weight.numel() * scheme.bits // _OCTET]
            parts[role] = octets.view(_held_as(dtypes[0])).reshape(size)
        else:
            parts[role] = part.to(_held_as(dtypes[0])).reshape(size)
    finite = [parts[role].isfinite().all() for role in ("scales", "biases")]
    return QuantizedWeight(scheme, shape, parts) if all(finite) else None


def _by_kernels(weight: Tensor, scheme: Affine) -> QuantizedWeight:
    """Quantize with the kernels that numba compiles."""
    kernels: Any = importlib.import_module("qmanifest.kernels.compiled")
    sizes = scheme.bits, scheme.group_size
    made = kernels.KERNELS.quantize(_stored(weight), *sizes, scheme.scale[0])
    return _weight(scheme, weight, Stored("U32", made.words), made.scales, made.biases)


def _by_reference(weight: Tensor, scheme: Affine) -> QuantizedWeight:
    """Quantize as it is written to be read, which also words every refusal."""
    sizes = scheme.bits, scheme.group_size
    made = quantize_affine(_stored(weight), *sizes, scheme.scale[0])
    packing = PACKINGS[scheme.pack]
    words = Stored(packing.layout.word_dtype, packing.pack(made.codes, scheme.bits))
    return _weight(scheme, weight, words, made.scales, made.biases)


def _weight(scheme: Affine, like: Tensor, *stored: Stored) -> QuantizedWeight:
    """Put stored parts where a weight is."""
    shape = tuple(like.shape)
    roles = [role for role, _, _ in scheme.parts(shape)]
    parts = {
        role: tensor_of(each).to(like.device)
        for role, each in zip(roles, stored, strict=True)
    }
    return QuantizedWeight(scheme, shape, parts)


def _stored(weight: Tensor) -> Stored:
    """See a tensor as a stored one, on the CPU."""
    code = _code(weight.dtype)
    if code is None:
        raise BackendError(f"a weight cannot be {weight.dtype}")
    held = weight.cpu().contiguous()
    if not DTYPES[code].numpy:
        held = held.view(getattr(torch, f"int{DTYPES[code].bits}"))
    return Stored(code, held.numpy().view(storage_dtype(code)))


def _code(dtype: torch.dtype) -> str | None:
    """Find what safetensors calls a torch dtype."""
    names = (row.code for row in DTYPES.values() if f"torch.{row.torch}" == str(dtype))
    return next(names, None)


def _held_as(dtype: str) -> torch.dtype:
    """Find the torch dtype of a part; unsigned words are signed ones of their bits."""
    return tensor_of(Stored(dtype, np.empty(0, storage_dtype(dtype)))).dtype
