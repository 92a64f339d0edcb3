"""Schemes as data: what a code means, and which tensors that takes.

Each scheme prints as one canonical line, and two manifests are compared by it:

    affine(bits=4, group=64, scale=F16|BF16, pack=u32-lsb)

To add a scheme, write a class with the members of `Affine` and add it to `Scheme`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from qmanifest.schemes.base import Extra, Parts
from qmanifest.schemes.codebook import Codebook
from qmanifest.schemes.integers import NO_ZERO, Integer, Zero, packed_zero, plain_zero
from qmanifest.schemes.opaque import Dim, Opaque, OpaquePart
from qmanifest.schemes.rows import Affine, Microscaling, ZeroPoint
from qmanifest.schemes.scaled import Scaled

Scheme: TypeAlias = (
    Affine | ZeroPoint | Microscaling | Integer | Scaled | Codebook | Opaque
)
"""Any of the schemes; `kind` tells them apart in JSON."""
RowScheme: TypeAlias = Affine | ZeroPoint | Microscaling
"""The schemes of MLX's layout, which kernels compute with."""
ROW_SCHEMES: Final = (Affine, ZeroPoint, Microscaling)
"""The same, to ask `isinstance`."""

__all__ = [
    "NO_ZERO",
    "ROW_SCHEMES",
    "Affine",
    "Codebook",
    "Dim",
    "Extra",
    "Integer",
    "Microscaling",
    "Opaque",
    "OpaquePart",
    "Parts",
    "RowScheme",
    "Scaled",
    "Scheme",
    "Zero",
    "ZeroPoint",
    "packed_zero",
    "plain_zero",
]
