"""`exl2`: ExLlamaV2's mixed bits; shapes are checked, values are not decoded.

A layer's groups have widths of their own, 2 to 8 bits, which `.q_groups` lists.

Source: https://github.com/turboderp-org/exllamav2, `conversion/adaptivegptq.py`;
FORMATS 14 is retold in docs/dialects/exl2.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.undecoded import UndecodedConfig, undecoded
from qmanifest.families import EXL2
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.evidence import Found


class Exl2Config(UndecodedConfig):
    """The document exactly as stored."""


SCHEME: Final = Opaque(
    "exl2",
    0,
    0,
    (
        OpaquePart("codes", ("I32",), None),
        OpaquePart("scales", ("I32",), None),
        OpaquePart("scale_max", ("F16",), None),
        OpaquePart("groups", ("I16",), None),
        OpaquePart("order", ("I32",), (Dim("K"),), optional=True),
    ),
)


def _scheme(_found: Found) -> Opaque:
    return SCHEME


DIALECT: Final = undecoded(
    "exl2", "EXL2, ExLlamaV2's mixed bits", Exl2Config, EXL2, _scheme
)
