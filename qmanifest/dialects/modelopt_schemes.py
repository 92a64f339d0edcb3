"""ModelOpt's algorithms, and the scheme of each.

Source: https://github.com/NVIDIA/Model-Optimizer, `export/quant_utils.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from qmanifest.dtypes import FLOAT
from qmanifest.schemes import Extra, Integer, Zero
from qmanifest.schemes.floats import fp8_blocks, fp8_whole, mxfp4, mxfp8, nvfp4
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape

Kind: TypeAlias = Literal[
    "fp8", "fp8-blocks", "nvfp4", "mxfp4", "mxfp8", "int4", "int8"
]
ALGORITHMS: Final[dict[str, Kind]] = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_PB_WO": "fp8-blocks",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "NVFP4_SVD": "nvfp4",
    "W4A8_NVFP4_FP8": "nvfp4",
    "W4A8_MXFP4_FP8": "mxfp4",
    "MXFP8": "mxfp8",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "W8A16": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
}
INT4_GROUP: Final = 128
"""Inputs of a group where an AWQ config does not say."""
_EXTRAS: Final = (
    Extra("input_scale", ("F32",), optional=True),
    Extra("pre_quant_scale", FLOAT, optional=True),
)


def scheme_of(
    algorithm: str, group_size: object, scales: Shape | None
) -> Scheme | None:
    """Name the scheme of an algorithm, or None where there is no such algorithm.

    Args:
        algorithm: in upper case.
        group_size: what the config says, if anything.
        scales: shape of the stored scales: one for a weight, or one for each output.

    """
    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        return None
    if kind in {"fp8", "int8"}:
        form = _form(scales)
        return fp8_whole(form) if kind == "fp8" else _int8(form)
    if kind == "int4":
        return _int4(group_size if isinstance(group_size, int) else INT4_GROUP)
    made: dict[Kind, Scheme] = {
        "fp8-blocks": fp8_blocks(128, 128),
        "nvfp4": nvfp4(),
        "mxfp4": mxfp4("u8-nibbles"),
        "mxfp8": mxfp8(),
    }
    return made[kind]


def _form(scales: Shape | None) -> Form:
    """Tell from their shape whether scales are one for all, or one for each output."""
    if not scales:
        return "scalar"
    if scales == (1,):
        return "one"
    return "vector" if len(scales) == 1 else "table"


def _int4(group_size: int) -> Integer:
    """Make ModelOpt's INT4: two outputs to a byte, two's complement."""
    return Integer(
        4,
        "u8-nibbles-stacked",
        "signed",
        Spread(1, group_size),
        FLOAT,
        Zero("none"),
        "sequential",
        "float32",
        _EXTRAS,
    )


def _int8(form: Form) -> Integer:
    """Make INT8 with one scale for a weight, or one for each output."""
    rows = 0 if form in {"scalar", "one"} else 1
    return Integer(
        8,
        "i8",
        "signed",
        Spread(rows, 0, form),
        FLOAT,
        Zero("none"),
        "sequential",
        "float32",
        _EXTRAS,
    )
