"""HQQ's scheme of a weight: what its settings say, and what is stored beside it.

Source: https://github.com/mobiusml/hqq, `core/quantize.py`, `core/bitpack.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dtypes import FLOAT
from qmanifest.layouts import LAYOUTS, SplitLayout
from qmanifest.schemes import Extra, Integer, Opaque, OpaquePart, plain_zero
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.tensors import TensorInfo

BITS: Final = (1, 1.58, 2, 3, 4, 5, 6, 8)
"""Widths that HQQ has. 1.58 are three values, stored in 2 bits."""
AXES: Final = (0, 1)
"""Axes of the table of blocks."""
TERNARY: Final = 1.58
WORDS: Final = {3: "i32-split-high"}
"""Layouts of the widths that do not lie in bytes."""
_FLAGS: Final = (
    *("view_as_float", "quant_scale", "quant_zero", "offload_meta"),
    *("encoded_state_dict", "stores_quant_config", "channel_wise", "optimize"),
    "round_zero",
)
_TEXTS: Final = ("packing", "unpack_view_dtype", "compute_dtype")


def scheme_of(
    own: Mapping[str, Any], codes: TensorInfo, scales: TensorInfo | None
) -> Integer | Opaque:
    """Name the scheme of a weight; it is opaque where HQQ does not have its width.

    Args:
        own: the settings, `weight_quant_params`.
        codes: the stored table of packed codes.
        scales: the stored scales; they tell the axis where the settings leave it open.

    """
    said = own.get("nbits")
    if said not in BITS or isinstance(said, bool):
        return _opaque(0, codes)
    bits = 2 if said == TERNARY else int(said)
    pack = WORDS.get(bits, "u8-split-high")
    if codes.dtype in FLOAT or own.get("channel_wise") is False:
        return _opaque(bits, codes)
    group, axis = own.get("group_size"), own.get("axis")
    if type(axis) is not int or axis not in AXES:
        axis = 0 if scales is not None and scales.shape[:1] == (1,) else 1
    if type(group) is not int or group <= 0:
        group = _whole(bits, pack, axis, codes)
    return Integer(
        bits,
        pack,
        "unsigned",
        Spread(0, group, "flat-column" if axis else "flat-row"),
        FLOAT,
        plain_zero("code", FLOAT),
        "sequential",
        "scale",
        _settings({"nbits": said, "axis": axis, "group_size": own.get("group_size")}),
    )


def _settings(numbers: Mapping[str, Any]) -> tuple[Extra, ...]:
    """Promise what lies beside every weight; without its shape none can be rebuilt."""
    whole = {key: n if isinstance(n, int) else None for key, n in numbers.items()}
    return (
        Extra("hqq_shape", ("I64",)),
        *(
            Extra(f"hqq_{key}", ("I32", "F32"), (), optional=True, value=number)
            for key, number in whole.items()
        ),
        *(Extra(f"hqq_{key}", ("U8",), (), optional=True) for key in _FLAGS),
        *(Extra(f"hqq_{key}", ("U8",), optional=True) for key in _TEXTS),
    )


def _whole(bits: int, pack: str, axis: int, codes: TensorInfo) -> int:
    """Count the weights of a row, or of a column, of a table that is not grouped."""
    layout = LAYOUTS[pack]
    if len(codes.shape) != 2 or not isinstance(layout, SplitLayout):  # noqa: PLR2004 - a table
        return 0
    words, columns = codes.shape
    return columns if axis else words * layout.parts(bits)


def _opaque(bits: int, codes: TensorInfo) -> Opaque:
    """Make a weight that is not decoded: words viewed as floats, or one scale."""
    stored = (
        OpaquePart("codes", (codes.dtype,), None),
        OpaquePart("scales", FLOAT, None),
        OpaquePart("zeros", FLOAT, None),
        OpaquePart("hqq_shape", ("I64",), None),
    )
    return Opaque("hqq", bits, 0, stored)
