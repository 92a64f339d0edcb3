"""Our side of the rows about numbers: the kernels that users get, or a named set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qmanifest.backends import reference
from qmanifest.kernels import active
from qmanifest.packings.arrays import Stored, from_float32, to_float32
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import AnyArray, Float32


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A quantized matrix, as it is stored."""

    scheme: Affine
    shape: tuple[int, int]
    """`(out_features, in_features)`."""
    words: AnyArray
    scales: Stored
    biases: Stored

    @property
    def parts(self) -> dict[str, Stored]:
        """The stored parts by role."""
        codes = Stored("U32", self.words)
        return {"codes": codes, "scales": self.scales, "biases": self.biases}

    @property
    def rebuilt(self) -> Float32:
        """The weight that the parts stand for, by the reference."""
        return reference.dequantize(self.scheme, self.parts, self.shape)


def quantize(
    weight: Stored, bits: int, group_size: int, kernels: Kernels | None = None
) -> Packed:
    """Quantize and pack a matrix, scales in its own dtype."""
    rows, width = weight.shape
    made = (kernels or active()).quantize(weight, bits, group_size)
    scheme = Affine(bits, group_size, (weight.dtype,), "u32-lsb")
    return Packed(scheme, (rows, width), made.words, made.scales, made.biases)


def dequantize(packed: Packed, out: AnyArray, kernels: Kernels | None = None) -> object:
    """Rebuild a matrix into `out`, in the dtype of its scales."""
    chosen = kernels or active()
    return chosen.dequantize(packed.scheme, packed.parts, packed.shape, out=out)


def random_matrix(shape: tuple[int, int], dtype: str, seed: int = 0) -> Stored:
    """Make a matrix of normal numbers, as a model's weights are distributed."""
    numbers = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return from_float32(numbers * np.float32(0.02), dtype)


def relative_error(result: AnyArray, exact: AnyArray) -> float:
    """Give the largest difference, relative to the largest exact number."""
    return float(np.abs(result - exact).max() / np.abs(exact).max())


def exact_product(x: Float32, weight: Float32) -> AnyArray:
    """Multiply `x @ weight.T` in float64."""
    return x.astype(np.float64) @ weight.astype(np.float64).T


def as_float32(stored: Stored) -> Float32:
    """Widen a stored tensor."""
    return to_float32(stored)
