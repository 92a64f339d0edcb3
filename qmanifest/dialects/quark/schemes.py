"""Quark's specs of weights, and the scheme of each.

Source: https://github.com/amd/Quark, `torch/export/nn/modules/realquantizer.py`,
`torch/utils/pack.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dtypes import FLOAT
from qmanifest.schemes import (
    NO_ZERO,
    Dim,
    Extra,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    Zero,
    packed_zero,
    plain_zero,
)
from qmanifest.schemes.floats import E8M0, STATIC
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import TensorInfo

INT4: Final = ("int4", "uint4")
INT8: Final = ("int8", "uint8")
SMALL: Final = ("fp6_e3m2", "mx", "mx6", "mx9", "int2", "uint2", "int3")
"""Dtypes that are not decoded here."""
_ELEMENTS: Final = {
    "fp4": ("e2m1", "u8-nibbles"),
    "fp6_e2m3": ("e2m3", "u8-lsb"),
    "fp8_e4m3": ("e4m3", "f8-e4m3"),
    "fp8_e5m2": ("e5m2", "f8-e5m2"),
}
"""Number format and layout of a dtype."""
BLOCKS: Final = ("mx", "mx6", "mx9")
"""Dtypes whose scales lie among the codes, so that no name shows them."""
DTYPES: Final = (*INT4, *INT8, *_ELEMENTS, *SMALL)
_EXTRAS: Final[tuple[Extra, ...]] = (STATIC,)
_CODES: Final[dict[str, tuple[Dim, ...]]] = {
    "int8": (Dim("K"), Dim("N")),
    "uint8": (Dim("K"), Dim("N")),
    "fp6_e3m2": (Dim("N"), Dim("K", 4, 3)),
}
"""Shapes of codes that are not decoded, where they are known: 8 bits by groups lie
inputs first."""


def scheme_of(
    specs: tuple[Mapping[str, Any], ...],
    scales: TensorInfo | None,
    zeros: TensorInfo | None,
    *,
    in_order: bool,
) -> Scheme:
    """Name the scheme of a spec; it is opaque where its dtype is not known.

    Args:
        specs: of the weights, as the config has them; the second of two may be that
            of the scales.
        scales: the stored scales, whose shape tells one from one for each output.
        zeros: the stored zero points.
        in_order: whether packed codes follow each other plainly.

    """
    spec = specs[0] if specs else {}
    dtype = str(spec.get("dtype")).lower()
    if len(specs) > 1:
        return _two_levels(dtype, spec, specs[1])
    if spec.get("scale_format") == "e5m3":
        return _opaque(dtype, 0)
    if dtype in INT4:
        return _int4(dtype, spec, scales, zeros, in_order=in_order)
    if dtype in _ELEMENTS:
        return _floats(dtype, spec, scales)
    if dtype in INT8 and spec.get("qscheme") != "per_group":
        return _int8(dtype, spec, scales, zeros)
    return _opaque(dtype, _group(spec))


def _group(spec: Mapping[str, Any]) -> int:
    """Read the group size; 0 where a row, or all, shares a scale."""
    size = spec.get("group_size")
    grouped = spec.get("qscheme") == "per_group"
    return size if grouped and type(size) is int and size > 0 else 0


def _int4(
    dtype: str,
    spec: Mapping[str, Any],
    scales: TensorInfo | None,
    zeros: TensorInfo | None,
    *,
    in_order: bool,
) -> Integer:
    """Make 4-bit integers, eight to a word; groups lie inputs first."""
    rows, group = "i32-lsb" if in_order else "i32-awq", _group(spec)
    spread = Spread(1, group, "transposed") if group else _whole(spec, scales)
    return Integer(
        4,
        f"{rows}-across" if group else rows,
        "signed" if dtype == "int4" else "unsigned",
        spread,
        FLOAT,
        _zero(dtype, spec, zeros, "" if spread.form in {"one", "scalar"} else rows),
        "sequential",
        "float32",
        _EXTRAS,
    )


def _int8(
    dtype: str,
    spec: Mapping[str, Any],
    scales: TensorInfo | None,
    zeros: TensorInfo | None,
) -> Integer:
    """Make a byte for each integer, with a scale for a row or for all."""
    pack = "i8" if dtype == "int8" else "u8"
    return Integer(
        8,
        pack,
        "signed" if dtype == "int8" else "unsigned",
        _whole(spec, scales),
        FLOAT,
        _zero(dtype, spec, zeros, ""),
        "sequential",
        "float32",
        _EXTRAS,
    )


def _zero(
    dtype: str, spec: Mapping[str, Any], zeros: TensorInfo | None, pack: str
) -> Zero:
    """Make the zero point: as is stored, and there has to be one where it counts."""
    if zeros is None and spec.get("symmetric") is not False:
        return NO_ZERO
    if spec.get("zero_point_type") == "float32":
        return plain_zero("code", FLOAT)
    if dtype in INT8:
        return plain_zero("code", ("I8",) if dtype == "int8" else ("U8",))
    return packed_zero(pack, plus=0, signed=dtype == "int4")


def _floats(dtype: str, spec: Mapping[str, Any], scales: TensorInfo | None) -> Scaled:
    """Make small floats: a power of two for a group, or a float for more."""
    element, pack = _ELEMENTS[dtype]
    group = _group(spec)
    bytes_of_scale = scales is not None and scales.dtype in E8M0
    if spec.get("scale_format") == "e8m0" or bytes_of_scale:
        return Scaled(
            element, pack, Spread(1, group or 32), E8M0, "e8m0", "none", "float32"
        )
    spread = Spread(1, group) if group else _whole(spec, scales)
    return Scaled(
        element, pack, spread, FLOAT, "float", "none", "float32", extras=_EXTRAS
    )


def _whole(spec: Mapping[str, Any], scales: TensorInfo | None) -> Spread:
    """Tell one scale for a weight from one for each output, or for each tile."""
    tile = spec.get("block_size")
    if spec.get("qscheme") == "per_block" and isinstance(tile, list) and len(tile) > 1:
        return Spread(int(tile[-2]), int(tile[-1]))
    shape = None if scales is None else scales.shape
    unsaid = spec.get("qscheme") not in {"per_tensor", "per_channel"}
    if spec.get("qscheme") == "per_tensor" or (unsaid and shape in {(), (1,)}):
        return Spread(0, 0, "one" if shape == (1,) else "scalar")
    form: Form = "table" if shape and len(shape) > 1 else "vector"
    return Spread(1, 0, form)


def _two_levels(
    dtype: str, spec: Mapping[str, Any], second: Mapping[str, Any]
) -> Scheme:
    """Make NVFP4, where a weight's own scale comes on top of FP8 ones."""
    scale = str(second.get("dtype")).lower()
    if dtype != "fp4" or scale != "fp8_e4m3" or second.get("qscheme") != "per_tensor":
        return _opaque(f"{dtype}-{scale}", 0)
    return Scaled(
        "e2m1",
        "u8-nibbles",
        Spread(1, _group(spec) or 16),
        ("F8_E4M3",),
        "e4m3",
        "multiply",
        "float32",
        extras=_EXTRAS,
    )


def _opaque(dtype: str, group: int) -> Opaque:
    """Make a weight whose values are not decoded."""
    known = _CODES.get(dtype)
    table = (Dim("K", group), Dim("N")) if dtype in INT8 and group else None
    parts = (
        OpaquePart("codes", ("U8", "I8", "I32", "I16"), known),
        OpaquePart("scales", (*FLOAT, *E8M0, "F8_E4M3"), table, dtype in BLOCKS),
        OpaquePart("zeros", ("U8", "I8", "I32", *FLOAT), None, optional=True),
    )
    bits = next((int(char) for char in dtype if char.isdigit()), 0)
    return Opaque(f"quark-{dtype}", bits, group, parts)
