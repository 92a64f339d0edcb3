"""The schemes of small floats as other libraries than MLX store them, made by numbers.

Sources: https://github.com/huggingface/transformers, `FineGrainedFP8Config`;
https://github.com/NVIDIA/Model-Optimizer, `NVFP4QTensor`; OCP Microscaling Formats.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT
from qmanifest.schemes.base import Extra
from qmanifest.schemes.scaled import Scaled
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.spreads import Form

E8M0: Final = ("F8_E8M0", "U8")
"""Dtypes that a scale of eight bits of exponent is stored in."""
STATIC: Final = Extra("input_scale", ("F32",), optional=True)
"""The scale of a layer's input, where calibration fixed one."""


@cache
def fp8_blocks(
    rows: int, columns: int, scale: tuple[str, ...] = FLOAT, scale_format: str = "float"
) -> Scaled:
    """Make FP8 with a scale for each tile of `rows` outputs by `columns` inputs.

    The tiles at the ends may be cut. 0 stands for all outputs, or all inputs.
    """
    return Scaled(
        "e4m3",
        "f8-e4m3",
        Spread(rows, columns),
        scale,
        scale_format,
        "none",
        "float32",
        extras=(STATIC,),
    )


@cache
def fp8_whole(form: Form) -> Scaled:
    """Make FP8 with one scale for a weight, or one for each output.

    `scalar` and `one` are the former, `vector` and `table` the latter.
    """
    spread = Spread(1 if form in {"vector", "table"} else 0, 0, form)
    return Scaled(
        "e4m3", "f8-e4m3", spread, FLOAT, "float", "none", "float32", extras=(STATIC,)
    )


@cache
def nvfp4(pack: str = "u8-nibbles") -> Scaled:
    """Make ModelOpt's NVFP4: an `e4m3` for each 16 inputs, times a scale of the weight.

    The second scale is `amax / (6 * 448)`, and is multiplied.
    """
    return Scaled(
        "e2m1",
        pack,
        Spread(1, 16),
        ("F8_E4M3",),
        "e4m3",
        "multiply",
        "float32",
        extras=(STATIC, Extra("pre_quant_scale", FLOAT, optional=True)),
    )


@cache
def mxfp4(pack: str) -> Scaled:
    """Make MXFP4: two codes to a byte, a power of two for each 32 inputs."""
    return Scaled("e2m1", pack, Spread(1, 32), E8M0, "e8m0", "none", "BF16")


@cache
def mxfp8() -> Scaled:
    """Make MXFP8: `e4m3` codes, a power of two for each 32 inputs."""
    return Scaled("e4m3", "f8-e4m3", Spread(1, 32), E8M0, "e8m0", "none", "float32")


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
        return mxfp4("u8-nibbles")
    return None
