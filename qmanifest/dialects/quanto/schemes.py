"""quanto's types of weights, and the scheme of each.

Source: https://github.com/huggingface/optimum-quanto, `nn/qmodule.py`,
`tensor/weights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT
from qmanifest.schemes import Extra, Integer, Opaque, OpaquePart, Scaled, plain_zero
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorInfo

ROW: Final = Spread(1, 0)
"""One scale for each output."""
GROUP: Final = 128
"""Weights of a block of 2 or 4 bits, where no tensor shows another size."""
BYTES: Final[dict[str, tuple[str, str]]] = {
    "qint8": ("i8", "i8"),
    "qfloat8": ("e4m3", "f8-e4m3"),
    "qfloat8_e4m3fn": ("e4m3", "f8-e4m3"),
    "qfloat8_e5m2": ("e5m2", "f8-e5m2"),
}
"""Types with a byte for a weight: number format and layout."""
NARROW: Final = {"qint2": 2, "qint4": 4}
"""Types with several weights to a byte, and their bits."""
STORED: Final = {
    "I8": ("qint8",),
    "F8_E4M3": ("qfloat8_e4m3fn", "qfloat8"),
    "F8_E5M2": ("qfloat8_e5m2",),
    "U8": ("qint4", "qint2"),
}
"""The types that are stored in a dtype."""
KINDS: Final = (*BYTES, *NARROW, "none")
ACTIVATIONS: Final = (
    Extra("input_scale", FLOAT, (), optional=True),
    Extra("output_scale", FLOAT, (), optional=True),
)
"""Scales of activations, which every quantized layer has; 1 where there are none."""


def kind_as_stored(kind: str, dtype: str) -> str:
    """Give `kind` where codes of it have that dtype, else a type whose codes do."""
    fitting = STORED.get(dtype, (kind,))
    return kind if kind in fitting else fitting[0]


def scheme_of(
    kind: str, codes: TensorInfo | None, shifts: TensorInfo | None
) -> Scheme | None:
    """Name the scheme of a type; None where quanto has no such type of weights.

    Args:
        kind: a name of `KINDS`.
        codes: as they are stored. A table of blocks is as wide as a block.
        shifts: the stored zeros: floats in units of weights, or integers of codes.

    """
    if kind in BYTES:
        element, pack = BYTES[kind]
        if codes is not None and len(codes.shape) != 2:  # noqa: PLR2004 - a matrix
            return _convolution(kind, codes)
        return Scaled(
            element, pack, ROW, FLOAT, "float", "none", "scale", extras=ACTIVATIONS
        )
    bits = NARROW.get(kind)
    if bits is None:
        return None
    whole = shifts is not None and shifts.dtype not in FLOAT
    return Integer(
        bits,
        "u8-split-low",
        "unsigned",
        Spread(0, codes.shape[-1] if codes and codes.shape else GROUP, "flat-column"),
        FLOAT,
        plain_zero("code", ("I8",)) if whole else plain_zero("shift", FLOAT),
        "sequential",
        "scale",
        ACTIVATIONS,
    )


def _convolution(kind: str, codes: TensorInfo) -> Opaque:
    """Make a weight of more axes than two, which is not decoded."""
    stored = (
        OpaquePart("codes", (codes.dtype,), None),
        OpaquePart("scales", FLOAT, None),
    )
    return Opaque(f"quanto-{kind}", 8, 0, stored)
