"""`higgs`: rotated weights on a grid; shapes are checked, values are not decoded.

Source: https://github.com/huggingface/transformers, `integrations/higgs.py`; what is
known is retold in docs/dialects/higgs.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from annotated_types import Gt

from qmanifest.dialects.base import Indexes, Lowered, Place
from qmanifest.dialects.lowering.undecoded import ListedConfig, undecoded
from qmanifest.dtypes import FLOAT
from qmanifest.families import HIGGS
from qmanifest.findings import DefectKind
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.undecoded import Parts

WORD: Final = 16
"""Bits of a word; 16 outputs share as many words as a code has bits."""


class HiggsConfig(ListedConfig):
    """The document exactly as stored."""

    bits: Literal[2, 3, 4] = 4
    """Bits of a weight."""
    p: Literal[1, 2] = 2
    """Weights that have one code on the grid."""
    hadamard_size: Annotated[int, Gt(0)] = 512
    """Inputs that are rotated together, whole groups of them."""
    group_size: Literal[64, 128, 256] = 256
    """Inputs that share a scale."""
    tune_metadata: dict[str, Any] | None = None
    """By module, for which GPU its words were put in order."""


def _scheme(said: HiggsConfig, _name: str, _parts: Parts) -> Opaque:
    """Name the scheme of a weight by what the document says of all."""
    grid = Dim("one", times=1 << said.bits)
    words = (Dim("N", WORD, said.bits), Dim("K"))
    stored = (
        OpaquePart("codes", ("I16",), words),
        OpaquePart("scales", FLOAT, (Dim("N"), Dim("K", said.group_size))),
        OpaquePart("tables", FLOAT, (grid,)),
        OpaquePart("tables2", FLOAT, (grid, grid, Dim("one", times=2))),
    )
    return Opaque("higgs", said.bits, said.group_size, stored)


def _lower(said: HiggsConfig, place: Place, indexes: Indexes | None) -> Lowered:
    """Lower a document, and report what is rotated if it is no whole groups."""
    lowered = _SHAPED.lower(said, place, indexes)
    if said.hadamard_size % said.group_size == 0:
        return lowered
    reason = (
        f"hadamard_size {said.hadamard_size} is no multiple of group_size "
        f"{said.group_size}"
    )
    defect = place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, "hadamard_size")
    return Lowered(lowered.manifest, (*lowered.defects, defect))


_SHAPED: Final = undecoded(
    "higgs", "HIGGS, rotated weights on a grid", HiggsConfig, HIGGS, _scheme
)
DIALECT: Final = replace(_SHAPED, lower=_lower)
