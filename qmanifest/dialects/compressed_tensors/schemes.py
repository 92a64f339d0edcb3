"""How compressed-tensors stores one weight: the scheme of a group's numbers.

What the config leaves open is read off the stored parts: which of two packings 3, 5, 6
and 7 bits are in, and whether one number is a vector of one or a scalar.

Source: https://github.com/vllm-project/compressed-tensors,
`compressed_tensors/compressors/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT
from qmanifest.layouts import LAYOUTS
from qmanifest.schemes import (
    NO_ZERO,
    Dim,
    Extra,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    Scheme,
    packed_zero,
    plain_zero,
)
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
    from qmanifest.tensors import Shape

PACKED_FORMATS: Final = (
    "pack-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp6-pack-quantized",
    "marlin-24",
)
"""Formats whose codes are called `weight_packed`."""
MICROSCALING: Final = {
    "mxfp4-pack-quantized": ("e2m1", "u8-nibbles"),
    "mxfp6-pack-quantized": ("e2m3", "u8-lsb"),
    "mxfp8-quantized": ("e4m3", "f8-e4m3"),
}
"""Number format and packing of the formats with a power of two per group."""
BYTE: Final = 8
SPARSE: Final = ("sparse-24-bitmask", "sparse-bitmask")
"""Formats of pruned weights."""
_ANY: Final = ("BF16", "F16", "F32", "F8_E4M3", "I8")
"""Dtypes that the weights which pruning left may have."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the stored parts of a weight show that its config does not say."""

    whole: bool
    """Whether words hold whole codes, as before 0.18."""
    scalar: bool
    """Whether a single scale is a scalar."""
    dims: int
    """Dimensions of the codes, and so of the weight."""
    scalar_input: bool
    """Whether a single scale of inputs is a scalar."""


def fits_whole(codes: Shape, scales: Shape, args: QuantizationArgs) -> bool | None:
    """Tell from shapes whether words hold whole codes, where only one way fits.

    Args:
        codes: shape of the packed codes, `(N, words)`.
        scales: shape of the scales, `(N, groups)`.
        args: how the weight is quantized.

    """
    if args.spread != "group" or not args.group_size or not codes or not scales:
        return None
    weight = (*codes[:-1], scales[-1] * args.group_size)
    fitting = [
        LAYOUTS[pack].packed_shape(weight, args.num_bits) == codes
        for pack in ("i32-lsb", "i32-whole")
    ]
    return fitting[1] if fitting.count(True) == 1 else None


def input_parts(
    args: QuantizationArgs | None, side: str, *, scalar: bool
) -> tuple[Extra, ...]:
    """List what is stored of inputs or outputs: `side` is what their parts begin with.

    Of scales that are made when the model runs there is nothing.
    """
    if args is None or args.dynamic is True:
        return ()
    parts = []
    if args.spread == "tensor_group":
        parts.append(Extra(f"{side}_global_scale", ("F32",), (1,)))
    if args.dynamic == "local":
        return tuple(parts)
    one = () if scalar else (1,)
    shape = one if args.spread == "tensor" else None
    parts.append(Extra(f"{side}_scale", FLOAT, shape))
    if not args.symmetric:
        parts.append(Extra(f"{side}_zero_point", ("I8", "F8_E4M3"), shape))
    return tuple(parts)


def scheme_of(
    args: QuantizationArgs, stored_as: str, stored: Stored, extras: tuple[Extra, ...]
) -> Scheme | None:
    """Name the scheme of a weight; None where no format stores such numbers."""
    if stored_as in SPARSE:
        return sparse(stored_as)
    if stored_as == "marlin-24":
        return marlin(args.num_bits, max(args.group_size or 0, 0))
    spread = _spread(args, scalar=stored.scalar)
    if args.type == "int":
        return _integer(args, spread, stored_as, stored, extras)
    return _small_floats(args, spread, stored_as, extras)


def _small_floats(
    args: QuantizationArgs, spread: Spread, stored_as: str, extras: tuple[Extra, ...]
) -> Scheme | None:
    """Name the scheme of small floats."""
    if stored_as in MICROSCALING:
        element, pack = MICROSCALING[stored_as]
        return Scaled(
            element, pack, spread, ("U8",), "e8m0", "none", "BF16", extras=extras
        )
    if stored_as == "nvfp4-pack-quantized":
        return Scaled(
            "e2m1",
            "u8-nibbles",
            spread,
            ("F8_E4M3",),
            "e4m3",
            "divide" if args.spread == "tensor_group" else "none",
            "BF16",
            global_shape=(1,),
            extras=extras,
        )
    if args.num_bits != BYTE or stored_as in PACKED_FORMATS:
        return None
    return Scaled(
        "e4m3", "f8-e4m3", spread, FLOAT, "float", "none", "scale", extras=extras
    )


def _spread(args: QuantizationArgs, *, scalar: bool) -> Spread:
    """Say which weights share a scale."""
    if args.block is not None:
        return Spread(*args.block)
    if args.spread in {"group", "tensor_group"}:
        return Spread(1, max(args.group_size or 0, 0))
    if args.spread == "channel":
        return Spread(1, 0)
    return Spread(0, 0, "scalar" if scalar else "one")


def _integer(
    args: QuantizationArgs,
    spread: Spread,
    stored_as: str,
    stored: Stored,
    extras: tuple[Extra, ...],
) -> Scheme | None:
    """Name the scheme of integers, packed or one to a byte."""
    bits, packed = args.num_bits, stored_as == "pack-quantized"
    if stored_as.startswith(("nvfp4", "mx", "float")) or bits < 1:
        return None
    if bits > BYTE:
        return None if packed else _wide(bits)
    end = "whole" if stored.whole else "lsb"
    zero = NO_ZERO
    if not args.symmetric:
        stacked = packed and args.spread in {"group", "channel"}
        zero = (
            packed_zero(f"i32-{end}-stacked", plus=0, signed=True)
            if stacked
            else plain_zero("code", ("I8",))
        )
    shape = Extra("shape", ("I64", "I32"), (stored.dims,))
    return Integer(
        bits,
        f"i32-{end}" if packed else "i8",
        "offset" if packed else "signed",
        spread,
        FLOAT,
        zero,
        "listed" if args.lists_groups else "sequential",
        "scale",
        (shape, *extras) if packed else extras,
    )


@cache
def _wide(bits: int) -> Opaque:
    """Name the scheme of integers of 9 to 16 bits, which are not decoded here."""
    codes = OpaquePart("codes", ("I16",), (Dim("N"), Dim("K")))
    zeros = OpaquePart("zeros", ("I16",), None, optional=True)
    return Opaque("int16", bits, 0, (codes, OpaquePart("scales", FLOAT, None), zeros))


@cache
def sparse(stored_as: str) -> Opaque:
    """Name the scheme of pruned weights: those that are left, and where they were.

    Of 2:4 sparsity two of every four consecutive weights of a row are left, otherwise
    nothing tells how many.
    """
    rows, one = Dim("N"), Dim("one")
    half = (rows, Dim("K", 2)) if stored_as == "sparse-24-bitmask" else None
    parts = (
        OpaquePart("codes", _ANY, half),
        OpaquePart("bitmask", ("U8",), (rows, Dim("K", BYTE))),
        OpaquePart("shape", ("I64",), (Dim("one", times=2), one)),
        OpaquePart("scales", FLOAT, None, optional=True),
    )
    offsets = OpaquePart("row_offsets", ("I64",), (rows,))
    return Opaque(stored_as, 0, 0, parts if half else (*parts, offsets))


@cache
def marlin(bits: int, group_size: int) -> Opaque:
    """Name the scheme of Marlin's 2:4 kernels, whose order of codes is not retold."""
    parts = (
        OpaquePart("codes", ("I32",), None),
        OpaquePart("marlin_scales", FLOAT, None),
        OpaquePart("marlin_meta", ("I16", "I32"), None),
    )
    return Opaque("marlin-24", bits, group_size, parts)
