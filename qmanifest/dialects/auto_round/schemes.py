"""AutoRound's numbers of a layer, and the scheme that they come to in each format.

Source: https://github.com/intel/auto-round, `export/export_to_autoround`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.dtypes import FLOAT
from qmanifest.families import BLOCK_FP8, GPTQ, PACKED, SCALED
from qmanifest.schemes import Dim, Extra, Opaque, OpaquePart, Scaled
from qmanifest.schemes.floats import fp8_blocks, mxfp8, packed_floats
from qmanifest.schemes.qweight import awq_gemm, gptq, undecoded
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.evidence import Found
    from qmanifest.families import Family
    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape, TensorIndex

FAMILIES: Final[tuple[Family, ...]] = (GPTQ, PACKED, SCALED, BLOCK_FP8)
"""What AutoRound's tensors may be."""
PACKINGS: Final = ("auto_round:auto_gptq", "auto_round", "auto_round:auto_awq")
"""Formats of `.qweight` tensors; the first is the default."""
BITS: Final = range(2, 9)
OWN: Final = "auto_round"
"""What the names of its own formats begin with."""
ELSEWHERE: Final = ("llm_compressor", "fp8", "fake", "mlx")
"""Parts of the names of formats that have no `.qweight`."""
FLOATS: Final = ("fp8", "mx", "nv")
"""What the data types begin with that are no integers."""
E5M3: Final = Opaque(
    "nvfp4-e5m3",
    4,
    16,
    (
        OpaquePart("codes", ("U8",), (Dim("N"), Dim("K", 2))),
        OpaquePart("scales", ("U8", *FLOAT), (Dim("N"), Dim("K", 16))),
    ),
)
"""NVFP4 with scales of a float that has no dtype."""
BYTE: Final = 8
"""Bits of a code of FP8."""
FORMS: Final[dict[int, Form]] = {0: "scalar", 1: "vector", 2: "table"}
"""How FP8's scales are stored, by their dimensions; `(1,)` is one for the weight."""
Group: TypeAlias = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is said of a layer."""

    bits: int
    group_size: Group
    """Inputs that share a scale; -1 is all of a row; outputs and inputs of a tile."""
    sym: bool
    data_type: str


def is_known(packing: str) -> bool:
    """Whether a `packing_format`, in lower case, is one of AutoRound's."""
    return packing.startswith(OWN) or packing == "mlx"


def scheme_of(
    packing: str, numbers: Numbers, name: str, found: Found, index: TensorIndex
) -> Scheme | None:
    """Name the scheme of a stored weight; None where the format has no such tensors.

    Args:
        packing: the `packing_format`, in lower case.
        numbers: what is said of the layer.
        name: the weight's name.
        found: how it is stored.
        index: the tensors beside it.

    """
    bits, group = numbers.bits, numbers.group_size
    size = group if isinstance(group, int) else 0
    if found.family is GPTQ:
        return words(packing, bits, max(size, 0), sym=numbers.sym)
    if found.family is BLOCK_FP8:
        tile = group if isinstance(group, tuple) else (128, 128)
        return fp8_blocks(tile[0], tile[-1], FLOAT, "float") if bits == BYTE else None
    if found.family is PACKED:
        e5m3 = "e5m3" in packing or numbers.data_type == "nvfp4_v2"
        return E5M3 if e5m3 else packed_floats(numbers.data_type, bits)
    if bits != BYTE:
        return None
    if numbers.data_type.startswith("mx"):
        return mxfp8()
    scales = index.get(found.family.names.name(name, "scales"))
    return _fp8(found.codes.dtype, () if scales is None else scales.shape)


def words(packing: str, bits: int, group_size: int, *, sym: bool) -> Scheme | None:
    """Name the scheme of a `.qweight`; codes of 5 to 7 bits are one stream too.

    Zero points are stored minus one where the format is GPTQ's first.
    """
    if any(part in packing for part in ELSEWHERE):
        return None
    if bits not in BITS:
        return undecoded(packing, bits, group_size)
    if "awq" in packing:
        return awq_gemm(bits, group_size)
    first = "gptq" in packing and "gptqmodel" not in packing
    return gptq(bits, group_size, plus=1 if first else 0, symmetric=sym)


def _fp8(dtype: str, scales: Shape) -> Scaled:
    """Make FP8 with one scale, or one for each output, as it is stored."""
    form: Form = "one" if scales == (1,) else FORMS.get(len(scales), "table")
    whole = form in {"one", "scalar"}
    element, pack = ("e5m2", "f8-e5m2") if dtype == "F8_E5M2" else ("e4m3", "f8-e4m3")
    return Scaled(
        element,
        pack,
        Spread(0 if whole else 1, 0, form),
        FLOAT,
        "float",
        "none",
        "float32",
        extras=(Extra("input_scale", FLOAT, optional=True),),
    )
