"""ModelOpt's algorithms, and the scheme of each.

Source: https://github.com/NVIDIA/Model-Optimizer, `torch/export/quant_utils.py`,
`get_weight_scaling_factor` and `to_quantized_weight`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from qmanifest.families import SCALED
from qmanifest.schemes import NO_ZERO, Dim, Extra, Integer, Opaque, OpaquePart, Scaled
from qmanifest.schemes.floats import E8M0, PRE_QUANT, WIDE, fp8, fp8_whole, mxfp8, nvfp4
from qmanifest.schemes.floats import mxfp4 as make_mxfp4
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.schemes.floats import Extras
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape, TensorIndex, TensorInfo

Kind: TypeAlias = Literal[
    "fp8", "fp8-blocks", "nvfp4", "mxfp4", "mxfp8", "int4", "int8"
]
ALGORITHMS: Final[dict[str, Kind]] = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_PB_WO": "fp8-blocks",
    "FP8_PB_REAL": "fp8-blocks",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "NVFP4_SVD": "nvfp4",
    "W4A8_NVFP4_FP8": "nvfp4",
    "W4A8_MXFP4_FP8": "mxfp4",
    "MXFP4": "mxfp4",
    "MXFP8": "mxfp8",
    "W4A16_AWQ": "int4",
    "W4A8_AWQ": "int4",
    "W8A16": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8",
}
BITS: Final[dict[Kind, int]] = {
    "fp8": 8,
    "fp8-blocks": 8,
    "nvfp4": 4,
    "mxfp4": 4,
    "mxfp8": 8,
    "int4": 4,
    "int8": 8,
}
"""Width of a code."""
WEIGHT_ONLY: Final = ("W4A16_NVFP4", "W4A16_AWQ", "W8A16", "FP8_PB_WO")
"""Algorithms that leave a layer's input as it is."""
INT4_GROUP: Final = 128
"""Inputs of a group where an AWQ config does not say."""
BLOCK: Final = 128
"""Outputs and inputs of a block of FP8, which no config says."""
_SPACED: Final = 4
"""Dimensions of scales that lie one for each block, spaced by ones."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Shapes of a weight's stored scales; None for one that is not stored."""

    first: Shape | None = None
    second: Shape | None = None
    of_input: Shape | None = None

    def extras(self, algorithm: str) -> Extras:
        """Promise the scale of a layer's input, and AWQ's of every input."""
        of_input = () if algorithm not in WEIGHT_ONLY else None
        shape = (1,) if self.of_input == (1,) else of_input
        return (Extra("input_scale", WIDE, shape, optional=True), PRE_QUANT)

    @property
    def of_weight(self) -> Shape:
        """Shape of the second scale: one number."""
        return (1,) if self.second == (1,) else ()


def scales_of(name: str, index: TensorIndex) -> Scales:
    """Look up the shapes of a weight's scales."""
    roles = ("scales", "global_scale", "input_scale")
    found = (index.get(SCALED.names.name(name, role)) for role in roles)
    return Scales(*(None if each is None else each.shape for each in found))


def scheme_of(algorithm: str, group_size: object, scales: Scales) -> Scheme | None:
    """Name the scheme of an algorithm, or None where there is no such algorithm.

    Args:
        algorithm: in upper case.
        group_size: what the config says, if anything.
        scales: how the stored scales lie, which no config says.

    """
    kind = ALGORITHMS.get(algorithm)
    if kind is None:
        return None
    extras = scales.extras(algorithm)
    if kind == "fp8":
        return fp8_whole(_form(scales.first), extras)
    if kind == "int8":
        return _int8(_form(scales.first), extras)
    if kind == "int4":
        group = group_size if isinstance(group_size, int) else INT4_GROUP
        return _int4(group, algorithm, scales)
    form: Form = "spaced" if len(scales.first or ()) == _SPACED else "table"
    made: dict[Kind, Scheme] = {
        "fp8-blocks": fp8(Spread(BLOCK, BLOCK, form), WIDE, "float", extras),
        "nvfp4": nvfp4("u8-nibbles", scales.of_weight, extras),
        "mxfp4": make_mxfp4("u8-nibbles", E8M0, "e8m0", extras),
        "mxfp8": mxfp8(extras),
    }
    return made[kind]


def stacked(codes: TensorInfo) -> Opaque | None:
    """Measure a stack of experts whose inputs come before their outputs.

    ModelOpt stores Llama 4's and gpt-oss's experts as their modules have them, so that
    codes are packed along the last axis but one. Values are not decoded here. None
    where the codes are no stack.
    """
    if len(codes.shape) != len(("experts", "inputs", "outputs")):
        return None
    experts, inputs, outputs = codes.shape
    lead = Dim("one", times=experts)
    of_input = OpaquePart("input_scale", WIDE, None, optional=True)
    if codes.dtype != "U8":
        whole = OpaquePart("codes", (codes.dtype,), (lead, Dim("K"), Dim("N")))
        scales = OpaquePart("scales", WIDE, None)
        shape = (experts, outputs, inputs)
        return Opaque("fp8-stack", 8, 0, (whole, scales, of_input), shape)
    packed = OpaquePart("codes", ("U8",), (lead, Dim("K", 2), Dim("N")))
    scales = OpaquePart("scales", ("F8_E4M3",), (lead, Dim("K", 16), Dim("N")))
    second = OpaquePart("global_scale", ("F32",), None)
    shape = (experts, outputs, 2 * inputs)
    return Opaque("nvfp4-stack", 4, 16, (packed, scales, second, of_input), shape)


def _form(scales: Shape | None) -> Form:
    """Tell from their shape whether scales are one for all, or one for each output."""
    if not scales:
        return "scalar"
    if scales == (1,):
        return "one"
    return "vector" if len(scales) == 1 else "table"


def _int4(group_size: int, algorithm: str, scales: Scales) -> Integer:
    """Make ModelOpt's INT4: two outputs to a byte, two's complement.

    `W4A8_AWQ` rounds the weight once more, to FP8, by a second scale; the codes do not
    take part in that.
    """
    second = Extra("global_scale", ("F32",), scales.of_weight)
    return Integer(
        *(4, "u8-nibbles-stacked", "signed", Spread(1, group_size), WIDE),
        *(NO_ZERO, "sequential", "float32"),
        (*scales.extras(algorithm), *([second] if algorithm == "W4A8_AWQ" else ())),
    )


def _int8(form: Form, extras: Extras) -> Scaled:
    """Make INT8 with one scale for a weight, or one for each output."""
    rows = 0 if form in {"scalar", "one"} else 1
    return Scaled(
        *("i8", "i8", Spread(rows, 0, form), WIDE, "float", "none", "float32"),
        extras=extras,
    )
