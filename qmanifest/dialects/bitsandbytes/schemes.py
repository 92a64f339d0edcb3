"""bitsandbytes' schemes, told by the names, dtypes and shapes of what is stored.

Source: https://github.com/bitsandbytes-foundation/bitsandbytes, `QuantState`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from qmanifest.families import BNB4, PartNames
from qmanifest.schemes import Codebook, Extra, Scaled
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex, TensorInfo

Table: TypeAlias = Literal["nf4", "fp4"]
BLOCK: Final = 64
"""Weights of a block, unless what is stored shows another size."""
NESTED: Final = 256
"""Absmax values that share a scale, where they are quantized too."""
BLOCKS: Final = (64, 128, 256, 512, 1024, 2048, 4096, 32)
"""Sizes that bitsandbytes has, the default first."""
INT8: Final = Scaled(
    "i8",
    "i8",
    Spread(1, 0, "vector"),
    ("F32",),
    "float",
    "none",
    "float32",
    factor=0.00787401571869850,
    extras=(Extra("format", ("U8",), (), optional=True, value=0),),
)
"""Rows of int8 with their largest magnitude, times what the library has for 1/127."""


def names_of(name: str, index: TensorIndex) -> tuple[PartNames, Table | None]:
    """Name the parts of a 4-bit weight, and the table that its state is called by."""
    tables: tuple[Table, ...] = ("nf4", "fp4")
    for table in tables:
        suffix = f".quant_state.bitsandbytes__{table}"
        if name + suffix in index:
            others = tuple(
                pair for pair in BNB4.names.suffixes if "quant_state" not in pair[0]
            )
            return PartNames("", (*others, ("quant_state", suffix))), table
    return BNB4.names, None


def four_bit(table: Table, codes: TensorInfo, absmax: TensorInfo | None) -> Codebook:
    """Make the scheme of a 4-bit weight; an absmax of bytes is itself quantized."""
    nested = absmax is not None and absmax.dtype == "U8"
    return Codebook(
        table,
        _block(codes, absmax),
        NESTED if nested else 0,
        f"{codes.dtype.lower()}-flat-high",
    )


def _block(codes: TensorInfo, absmax: TensorInfo | None) -> int:
    """Tell the block size from the number of blocks."""
    if absmax is None or len(absmax.shape) != 1:
        return BLOCK
    weights = 2 * codes.nbytes
    sizes = (s for s in BLOCKS if -(-weights // s) == absmax.shape[0])
    return next(sizes, BLOCK)
