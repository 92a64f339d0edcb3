"""The schemes of small floats as other libraries than MLX store them, made by numbers.

Sources: https://github.com/huggingface/transformers, `FineGrainedFP8Config`;
https://github.com/NVIDIA/Model-Optimizer, `NVFP4QTensor`; OCP Microscaling Formats.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.dtypes import FLOAT
from qmanifest.schemes.base import Extra
from qmanifest.schemes.scaled import Scaled
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape

E8M0: Final = ("F8_E8M0", "U8")
"""Dtypes that a scale of eight bits of exponent is stored in."""
WIDE: Final = ("F32", "BF16", "F16")
"""Dtypes of a scale that is a number; writers take the first."""
STATIC: Final = Extra("input_scale", WIDE, optional=True)
"""The scale of a layer's input, where calibration fixed one."""
PRE_QUANT: Final = Extra("pre_quant_scale", FLOAT, optional=True)
"""What AWQ multiplies a layer's inputs by, one number for each."""
Extras: TypeAlias = tuple[Extra, ...]


@cache
def fp8(
    spread: Spread,
    scale: tuple[str, ...],
    scale_format: str,
    extras: Extras = (STATIC,),
) -> Scaled:
    """Make FP8 with a scale for each block of `spread`."""
    return Scaled(
        *("e4m3", "f8-e4m3", spread, scale, scale_format, "none", "float32"),
        extras=extras,
    )


def fp8_blocks(
    rows: int,
    columns: int,
    scale: tuple[str, ...],
    scale_format: str,
    extras: Extras = (STATIC,),
) -> Scaled:
    """Make FP8 with a scale for each tile of `rows` outputs by `columns` inputs.

    The tiles at the ends may be cut.
    """
    return fp8(Spread(rows, columns), scale, scale_format, extras)


def fp8_whole(form: Form, extras: Extras = (STATIC,)) -> Scaled:
    """Make FP8 with one scale for a weight, or one for each output.

    `scalar` and `one` are the former, `vector` and `table` the latter.
    """
    spread = Spread(1 if form in {"vector", "table"} else 0, 0, form)
    return fp8(spread, WIDE, "float", extras)


@cache
def nvfp4(
    pack: str,
    global_shape: Shape = (),
    extras: Extras = (STATIC, PRE_QUANT),
) -> Scaled:
    """Make ModelOpt's NVFP4: an `e4m3` for each 16 inputs, times a scale of the weight.

    The second scale is `amax / (6 * 448)`, and is multiplied.
    """
    return Scaled(
        *("e2m1", pack, Spread(1, 16), ("F8_E4M3",), "e4m3", "multiply", "float32"),
        global_shape=global_shape,
        extras=extras,
    )


@cache
def mxfp4(
    pack: str,
    scale: tuple[str, ...],
    scale_format: str,
    extras: Extras = (),
) -> Scaled:
    """Make MXFP4: two codes to a byte, a scale for each 32 inputs.

    It is a power of two, or where a format says so any number.
    """
    return Scaled(
        *("e2m1", pack, Spread(1, 32), scale, scale_format, "none", "BF16"),
        extras=extras,
    )


@cache
def mxfp8(extras: Extras = ()) -> Scaled:
    """Make MXFP8: `e4m3` codes, a power of two for each 32 inputs."""
    return fp8(Spread(1, 32), E8M0, "e8m0", extras)


@cache
def packed_floats(data_type: str, bits: int) -> Scaled | None:
    """Make the scheme behind `.weight_packed` of bytes, as compressed-tensors has it.

    `nv_fp` divides by its second scale, `mx_fp` has none; None for other types.
    """
    if data_type.startswith("nv_fp") and bits == 4:  # noqa: PLR2004 - e2m1
        return Scaled(
            "e2m1",
            "u8-nibbles",
            Spread(1, 16),
            ("F8_E4M3",),
            "e4m3",
            "divide",
            "BF16",
            global_shape=(1,),
            extras=(Extra("input_global_scale", ("F32",), (1,), optional=True),),
        )
    if data_type.startswith("mx_fp") and bits == 4:  # noqa: PLR2004 - e2m1
        return mxfp4("u8-nibbles", E8M0, "e8m0")
    return None
