"""`bitnet`: weights of -1, 0 and 1; shapes are checked, values are not decoded.

Source: https://github.com/huggingface/transformers, `integrations/bitnet.py`; what is
known is retold in docs/dialects/bitnet.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from qmanifest.dialects.base import ComponentNames, Indexes, Lowered, Place
from qmanifest.dialects.lowering.undecoded import ListedConfig, undecoded
from qmanifest.dtypes import FLOAT
from qmanifest.families import SCALED
from qmanifest.manifest import Manifest
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.undecoded import Parts

BITS: Final = 2
"""Bits of a code; four outputs share a byte."""


class BitnetConfig(ListedConfig):
    """The document exactly as stored."""

    linear_class: Literal["bitlinear", "autobitlinear"] = "bitlinear"
    """Which layer reads the weights: the first divides by the scale, the other
    multiplies."""
    quantization_mode: Literal["online", "offline"] = "offline"
    """`online`: weights of `autobitlinear` are 16-bit, and rounded when they run."""
    use_rms_norm: bool = False
    """Whether each layer has a norm of its own, for its inputs."""
    rms_norm_eps: float | None = 1e-6
    """What the norm adds before it divides."""

    def is_stored(self) -> bool:
        """Whether the weights are stored quantized, and not rounded when they run."""
        online = self.quantization_mode == "online"
        return not (online and self.linear_class == "autobitlinear")


def _scheme(_said: BitnetConfig, _name: str, _parts: Parts) -> Opaque:
    """Name the scheme of a weight: its last quarter of outputs has the highest bits."""
    stored = (
        OpaquePart("codes", ("U8",), (Dim("N", 8 // BITS), Dim("K"))),
        OpaquePart("scales", FLOAT, (Dim("one"),)),
    )
    return Opaque("bitnet", BITS, 0, stored)


def _components(said: BitnetConfig, place: Place) -> tuple[ComponentNames, ...]:
    return _STORED.components(said, place) if said.is_stored() else ()


def _lower(said: BitnetConfig, place: Place, indexes: Indexes | None) -> Lowered:
    if said.is_stored():
        return _STORED.lower(said, place, indexes)
    return Lowered(Manifest("bitnet", place.file))


_STORED: Final = undecoded(
    "bitnet", "BitNet, weights of -1, 0 and 1", BitnetConfig, SCALED, _scheme
)
DIALECT: Final = replace(_STORED, components=_components, lower=_lower)
