"""What a torchao config makes of a weight, told by the fields that are stored.

Source: https://github.com/pytorch/ao, the tensor subclasses of
`quantization/quantize_/workflows` and `prototype/mx_formats`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.torchao.said import INT4, MX, NVFP4, Said
from qmanifest.dtypes import FLOAT
from qmanifest.schemes import (
    NO_ZERO,
    Dim,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    plain_zero,
)
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape, TensorInfo

TILE: Final = 128
"""Outputs, or inputs, of a tile of block-wise FP8."""
TILED: Final = (
    Dim("N", 8),
    Dim("K", 128),
    Dim("one", times=32),
    Dim("one", times=4),
)
"""Words of int4 that lie in tiles, as a CUDA kernel reads them."""


def scheme_as_stored(
    said: Said, codes: TensorInfo, others: Mapping[str, TensorInfo | None]
) -> Scheme:
    """Name the scheme of a weight by its fields, where the config leaves it open.

    Args:
        said: what the config says of the weight.
        codes: the field `qdata`.
        others: the fields `scale`, `zero_point` and `per_tensor_scale`, by role.

    """
    scales = others.get("scales")
    if said.kind in INT4 or codes.dtype == "I32":
        return _int4(said.group or TILE, codes)
    if codes.dtype == "I8":
        return _integers(said, codes.shape, scales, others.get("zeros"))
    if codes.dtype in {"F8_E4M3", "F8_E5M2"}:
        element = codes.dtype.removeprefix("F8_").lower()
        mx = said.kind in MX or (scales is not None and scales.dtype not in FLOAT)
        if mx:
            return _groups(element, f"f8-{element}", 32, codes.shape, others)
        return _tiled(element, codes.shape, scales)
    *lead, half = codes.shape or (0,)
    nv = scales.dtype == "F8_E4M3" if scales is not None else said.kind in NVFP4
    group = 16 if nv else 32
    return _groups("e2m1", "u8-nibbles", group, (*lead, 2 * half), others)


def _integers(
    said: Said, shape: Shape, scales: TensorInfo | None, zeros: TensorInfo | None
) -> Integer:
    """Make integers with a code to a byte, and a scale for a row or a group of it."""
    group = said.group
    if scales is not None and scales.shape in {(), (1,), (1, 1)}:
        spread = Spread(0, 0, "table" if scales.shape[1:] else "one")
        spread = spread if scales.shape else Spread(0, 0, "scalar")
    else:
        if group is None:
            group = _evenly(shape, scales)
        spread = Spread(1, group)
    return Integer(
        said.bits,
        "i8",
        "signed",
        spread,
        FLOAT,
        NO_ZERO if zeros is None else plain_zero("code", ("I8",)),
        "sequential",
        "scale",
    )


def _evenly(shape: Shape, scales: TensorInfo | None) -> int:
    """Tell the group size by the number of scales, where they divide a row evenly."""
    columns = scales.shape[-1] if scales is not None and scales.shape[1:] else 1
    width = shape[-1] if shape else 0
    return width // columns if columns > 1 and width % columns == 0 else 0


def _groups(
    element: str,
    pack: str,
    group: int,
    shape: Shape,
    others: Mapping[str, TensorInfo | None],
) -> Scaled:
    """Make small floats with a byte of scale for a group, in rows or in tiles."""
    scales, plain = others.get("scales"), Spread(1, group)
    is_plain = scales is None or scales.shape == plain.shape(shape)
    form: Form = "table" if is_plain else "swizzled"
    nv = group != 32  # noqa: PLR2004 - inputs of a group of MX formats
    return Scaled(
        element,
        pack,
        Spread(1, group, form),
        ("F8_E4M3",) if nv else ("F8_E8M0", "U8"),
        "e4m3" if nv else "e8m0",
        "none" if others.get("global_scale") is None else "multiply",
        "BF16",
    )


def _tiled(element: str, shape: Shape, scales: TensorInfo | None) -> Scaled:
    """Make FP8 with a scale for the weight, a row, or a tile."""
    spread = Spread(1, 0)
    stored = None if scales is None else scales.shape
    if stored == ():
        spread = Spread(0, 0, "scalar")
    elif stored == (1,):
        spread = Spread(0, 0, "one")
    else:
        sizes = ((0, 0), (1, TILE), (TILE, TILE))
        tables = (Spread(rows, columns) for rows, columns in sizes)
        spread = next((each for each in tables if each.shape(shape) == stored), spread)
    return Scaled(
        element, f"f8-{element}", spread, FLOAT, "float", "none", rounds="BF16"
    )


def _int4(group: int, codes: TensorInfo) -> Opaque:
    """Make a weight whose values are not decoded: packed int4, and tiles of it."""
    if len(codes.shape) == len(TILED) and codes.dtype == "I32":
        tiles = (
            OpaquePart("codes", ("I32",), TILED),
            OpaquePart("scale_and_zero", FLOAT, None),
        )
        return Opaque("torchao-int4-tiles", 4, group, tiles)
    words = 8 if codes.dtype == "I32" else 2
    table = (Dim("K", group), Dim("N"))
    lead = tuple(Dim("one", times=size) for size in codes.shape[:-2])
    zeros = ("I8",) if codes.dtype == "I32" else FLOAT
    parts = (
        OpaquePart("codes", (codes.dtype,), (*lead, Dim("N"), Dim("K", words))),
        OpaquePart("scales", FLOAT, (*lead, *table)),
        OpaquePart("zeros", zeros, (*lead, *table)),
    )
    return Opaque("torchao-int4", 4, group, parts)
