"""`exl3`: ExLlamaV3's trellis codes; shapes are checked, values are not decoded.

Source: https://github.com/turboderp-org/exllamav3; FORMATS 14 is retold in
docs/dialects/exl3.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.undecoded import UndecodedConfig, undecoded
from qmanifest.families import EXL3
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.evidence import Found

TILE: Final = 16
"""Inputs and outputs of a tile, whose 256 codes share a trellis."""


class Exl3Config(UndecodedConfig):
    """The document exactly as stored."""


def _scheme(found: Found) -> Opaque:
    """Name the scheme of a trellis, whose last axis has 16 words for each bit."""
    shape = found.codes.shape
    bits = shape[-1] // TILE if shape else 0
    words = Dim("one", times=shape[-1] if shape else 0)
    inputs, outputs = (Dim("K"),), (Dim("N"),)
    parts = (
        OpaquePart("codes", ("I16",), (Dim("K", TILE), Dim("N", TILE), words)),
        OpaquePart("input_signs", ("F16",), inputs, optional=True),
        OpaquePart("output_signs", ("F16",), outputs, optional=True),
        OpaquePart("input_bits", ("I16",), (Dim("K", TILE),), optional=True),
        OpaquePart("output_bits", ("I16",), (Dim("N", TILE),), optional=True),
    )
    return Opaque("exl3", bits, 0, parts)


DIALECT: Final = undecoded(
    "exl3", "EXL3, ExLlamaV3's trellis", Exl3Config, EXL3, _scheme
)
