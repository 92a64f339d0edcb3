"""`exl3`: ExLlamaV3's trellis codes; shapes are checked, values are not decoded.

Source: https://github.com/turboderp-org/exllamav3; described in
docs/dialects/exl3.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from qmanifest.dialects.lowering.undecoded import UndecodedConfig, undecoded
from qmanifest.families import EXL3
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.undecoded import Parts

TILE: Final = 16
"""Inputs and outputs of a tile, whose 256 codes share a trellis."""


class Exl3Config(UndecodedConfig):
    """The document exactly as stored."""

    version: str | None = None
    bits: float | None = None
    """Bits of a weight, on average."""
    head_bits: float | None = None
    """Bits of the head's weights."""
    calibration: dict[str, Any] | None = None
    """How much text was run: `rows` and `cols`."""
    out_scales: Literal["always", "never", "auto"] | None = None
    codebook: Literal["mul1", "mcg", "3inst"] | None = None
    """How codes become values; `mul1` by default."""
    original_quantization_config: dict[str, Any] | None = None
    """The config of what was quantized, where that was quantized already."""


def _scheme(_said: Exl3Config, _name: str, parts: Parts) -> Opaque:
    """Name the scheme of a trellis, whose last axis has 16 words for each bit."""
    shape = parts["codes"].shape
    words = shape[-1] if shape else 0
    bits = 0 if words % TILE else words // TILE  # 2.5 bits are no whole number
    inputs, outputs = (Dim("K"),), (Dim("N"),)
    tiles = (Dim("K", TILE), Dim("N", TILE), Dim("one", times=words))
    old = {"input_bits", "output_bits"} & {*parts}
    stored = (
        OpaquePart("codes", ("I16",), tiles),
        OpaquePart("input_signs", ("F16",), inputs, optional=bool(old)),
        OpaquePart("output_signs", ("F16",), outputs, optional=bool(old)),
        OpaquePart("input_bits", ("I16",), (Dim("K", TILE),), optional=True),
        OpaquePart("output_bits", ("I16",), (Dim("N", TILE),), optional=True),
        OpaquePart("multiplier", ("I32",), (), optional=True),
        OpaquePart("other_multiplier", ("I32",), (), optional=True),
    )
    return Opaque("exl3", bits, 0, stored)


DIALECT: Final = undecoded(
    "exl3", "EXL3, ExLlamaV3's trellis", Exl3Config, EXL3, _scheme
)
