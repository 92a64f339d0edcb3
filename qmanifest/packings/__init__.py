"""Bit layouts of codes: one module per layout, all in `PACKINGS`.

To add one, describe it in `qmanifest.layouts`, write a module with the members of
`base.Packing`, and add that module to the tuple below.
"""

from __future__ import annotations

from typing import Final

from qmanifest.packings import u8_nibbles, u32_lsb
from qmanifest.packings.base import Packing

_MODULES: Final[tuple[Packing, ...]] = (u32_lsb, u8_nibbles)
PACKINGS: Final[dict[str, Packing]] = {each.layout.id: each for each in _MODULES}

__all__ = ["PACKINGS", "Packing"]
