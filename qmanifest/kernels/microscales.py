"""The numbers of a microscaling weight as tables: its codes, and a scale per group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qmanifest.backends.base import AMAX_UNIT
from qmanifest.elements import ELEMENTS
from qmanifest.packings.arrays import to_float32

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.packings.arrays import AnyArray, Float32, Stored
    from qmanifest.schemes import Microscaling
    from qmanifest.tensors import Shape


def code_values(scheme: Microscaling) -> Float32:
    """List what every code stands for, float32."""
    return np.array(ELEMENTS[scheme.element].values, np.float32)


def byte_values(scheme: Microscaling) -> AnyArray:
    """List what the codes of every byte stand for, `(256,)`.

    A code of 8 bits is one float32. Two codes of 4 bits are the two halves of one
    complex64, only so that they are moved together.
    """
    values, octets = code_values(scheme), np.arange(256, dtype=np.uint8)
    if scheme.bits == 8:  # noqa: PLR2004 - bits of a byte
        return values
    pairs = values[np.stack([octets & 15, octets >> 4], axis=-1)]
    return pairs.view(np.complex64).reshape(-1)


def group_scales(
    scheme: Microscaling, parts: Mapping[str, Stored], shape: Shape
) -> Float32 | None:
    """Find the factor of every group, flat, as the reference multiplies it.

    None where one is NaN or infinite: which of two NaN a product keeps differs between
    processors' instructions, so that the reference decides there.
    """
    values = np.array(ELEMENTS[scheme.scale].values, np.float32)
    rows = math.prod(shape[:-1])
    scales = values[parts["scales"].array.reshape(rows, -1)]
    if scheme.global_scale == "amax":
        amax = to_float32(parts["global_scale"]).reshape(-1)
        each = np.repeat(amax, rows // amax.size).reshape(rows, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            scales = scales * (each / AMAX_UNIT)
    return scales.reshape(-1) if np.isfinite(scales).all() else None
