"""Gemma's codes of 2, 4 and 8 bits, with one scale for each output.

Source: https://github.com/huggingface/transformers, `integrations/gemma_quant.py`.
"""

from __future__ import annotations

from typing import Final

from qmanifest.schemes import (
    NO_ZERO,
    Extra,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    Scheme,
)
from qmanifest.spreads import Spread

WIDTHS: Final = (2, 4, 8)
ROW: Final = Spread(1, 0)
"""One scale for each output."""
SCALE: Final = ("F32",)
ACTIVATIONS: Final = (
    Extra("input_activation_scale", SCALE, (), optional=True),
    Extra("output_activation_scale", SCALE, (), optional=True),
)
"""What a layer's inputs and outputs are rounded by; 0 where nothing was measured."""


def gemma(bits: int, *, table: bool) -> Scheme:
    """Make the scheme of a linear layer, or of an embedding's table.

    Narrow codes are stored plus half of their range, the first in the lowest bits.
    """
    extras = () if table else ACTIVATIONS
    if bits not in WIDTHS:
        stored = (
            OpaquePart("codes", ("U8", "I8"), None),
            OpaquePart("scales", SCALE, None),
        )
        return Opaque("gemma", bits, 0, stored)
    if bits == WIDTHS[-1]:
        return Scaled(
            *("i8", "i8", ROW, SCALE, "float", "none", "float32"), extras=extras
        )
    return Integer(
        *(bits, "u8-lsb", "offset", ROW, SCALE, NO_ZERO),
        order="sequential",
        arithmetic="float32",
        extras=extras,
    )
