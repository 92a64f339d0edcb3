"""`spqr`: 3-bit tiles and a sparse rest; shapes are checked, values are not decoded.

Source: https://github.com/Vahe1994/SpQR, `inference_lib/src/spqr_quant/inference.py`;
what is known is retold in docs/dialects/spqr.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from annotated_types import Ge

from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.undecoded import ListedConfig, undecoded
from qmanifest.families import SPQR
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.undecoded import Parts
    from qmanifest.tensors import Shape

TILE: Final = 16
"""Outputs and inputs of a tile, each of whose rows has a word of 64 bits."""
STORED: Final = (
    ("codes", ("I64",), "dense_weights"),
    ("row_offsets", ("I32",), "row_offsets"),
    ("col_vals", ("I32", "F32"), "col_vals"),  # floats where there are none
    ("in_perm", ("I32",), "in_perm"),
)
"""Role, dtypes and the name in `shapes` of every part; all are vectors."""


class SpqrConfig(ListedConfig):
    """The document exactly as stored."""

    bits: Literal[3] = 3
    """Bits of a code; readers have 3 alone."""
    beta1: Literal[16] = 16
    """Width of a tile; readers have 16 alone."""
    beta2: Literal[16] = 16
    """Height of a tile; readers have 16 alone."""
    shapes: dict[str, Annotated[int, Ge(0)]] | None = None
    """How long each part is, under its name and `.shape`: no other key tells it."""


def _scheme(said: SpqrConfig, name: str, parts: Parts) -> Opaque:
    """Name the scheme of a weight, whose parts are as long as the document says."""
    shape, stem = _shape(parts), name.removesuffix(SUFFIX)
    lengths = [(said.shapes or {}).get(f"{stem}.{key}.shape") for _, _, key in STORED]
    stored = tuple(
        OpaquePart(
            role,
            dtypes,
            None if length is None or shape is None else (Dim("one", times=length),),
        )
        for (role, dtypes, _), length in zip(STORED, lengths, strict=True)
    )
    return Opaque("spqr", said.bits, TILE, stored, shape)


def _shape(parts: Parts) -> Shape | None:
    """Tell the logical shape: two inputs have a word in the order of inputs.

    Outputs are counted in whole tiles.
    """
    words, order = parts["codes"].shape, parts.get("in_perm")
    if order is None or len(order.shape) != 1 or len(words) != 1:
        return None
    inputs = 2 * order.shape[0]
    tiles = -(-inputs // TILE)
    return (words[0] // tiles, inputs) if tiles else None


DIALECT: Final = undecoded(
    "spqr", "SpQR, 3-bit tiles and a sparse rest", SpqrConfig, SPQR, _scheme
)
