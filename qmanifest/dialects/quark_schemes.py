"""Quark's specs of weights, and the scheme of each.

Source: https://github.com/amd/Quark, `torch/export/nn/modules/realquantizer.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dtypes import FLOAT
from qmanifest.schemes import Extra, Integer, Opaque, OpaquePart, Scaled, Zero
from qmanifest.schemes.floats import E8M0, STATIC
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import TensorInfo

INT4: Final = ("int4", "uint4")
INT8: Final = ("int8", "uint8")
SMALL: Final = (
    "fp4",
    "fp6_e2m3",
    "mx",
    "mx6",
    "mx9",
    "fp6_e3m2",
    "int2",
    "uint2",
    "int3",
)
DTYPES: Final = (*INT4, *INT8, "fp8_e4m3", "fp8_e5m2", *SMALL)
_ELEMENTS: Final = {
    "fp4": ("e2m1", "u8-nibbles"),
    "fp6_e2m3": ("e2m3", "u8-lsb"),
    "fp8_e4m3": ("e4m3", "f8-e4m3"),
    "fp8_e5m2": ("e5m2", "f8-e5m2"),
}
"""Number format and layout of a dtype."""
_EXTRAS: Final[tuple[Extra, ...]] = (STATIC,)


def scheme_of(
    spec: Mapping[str, Any],
    scales: TensorInfo | None,
    *,
    in_order: bool,
    zeros: bool,
) -> Scheme | None:
    """Name the scheme of a spec; None where it has no dtype that is known.

    Args:
        spec: of the weights, as the config has it.
        scales: the stored scales, whose shape tells one from one for each output.
        in_order: whether packed codes follow each other plainly.
        zeros: whether zero points are stored.

    """
    dtype = str(spec.get("dtype")).lower()
    if dtype in INT4:
        return _int4(dtype, spec, in_order=in_order, zeros=zeros)
    if dtype in _ELEMENTS:
        return _floats(dtype, spec, scales)
    if dtype == "int8" and spec.get("qscheme") != "per_group":
        return Scaled(
            "i8",
            "i8",
            _whole(scales),
            FLOAT,
            "float",
            "none",
            "float32",
            extras=_EXTRAS,
        )
    return _opaque(dtype) if dtype in DTYPES else None


def _group(spec: Mapping[str, Any]) -> int:
    """Read the group size; 0 where a row, or all, shares a scale."""
    size = spec.get("group_size")
    grouped = spec.get("qscheme") in {"per_group", "per_block"}
    return size if grouped and type(size) is int and size > 0 else 0


def _int4(
    dtype: str, spec: Mapping[str, Any], *, in_order: bool, zeros: bool
) -> Integer:
    """Make 4-bit integers, eight outputs to a word, inputs first."""
    rows = "i32-lsb" if in_order else "i32-awq"
    signed = dtype == "int4"
    zero = Zero("code", ("I32",), rows) if zeros else Zero("none")
    return Integer(
        4,
        f"{rows}-across",
        "signed" if signed else "unsigned",
        Spread(1, _group(spec), "transposed"),
        FLOAT,
        zero,
        "sequential",
        "float32",
        _EXTRAS,
    )


def _floats(dtype: str, spec: Mapping[str, Any], scales: TensorInfo | None) -> Scaled:
    """Make small floats: a power of two for a group, or a float for more."""
    element, pack = _ELEMENTS[dtype]
    group = _group(spec)
    bytes_of_scale = scales is not None and scales.dtype in E8M0
    if spec.get("scale_format") == "e8m0" or bytes_of_scale:
        return Scaled(
            element, pack, Spread(1, group or 32), E8M0, "e8m0", "none", "float32"
        )
    spread = Spread(1, group) if group else _whole(scales)
    return Scaled(
        element, pack, spread, FLOAT, "float", "none", "float32", extras=_EXTRAS
    )


def _whole(scales: TensorInfo | None) -> Spread:
    """Tell one scale for a weight from one for each output."""
    shape = () if scales is None else scales.shape
    if shape in {(), (1,)}:
        return Spread(0, 0, "one" if shape else "scalar")
    form: Form = "vector" if len(shape) == 1 else "table"
    return Spread(1, 0, form)


def _opaque(dtype: str) -> Opaque:
    """Make a weight whose values are not decoded."""
    parts = (
        OpaquePart("codes", ("U8", "I8", "I32", "I16"), None),
        OpaquePart("scales", (*FLOAT, *E8M0), None, optional=True),
        OpaquePart("zeros", ("U8", "I8", "I32", *FLOAT), None, optional=True),
    )
    bits = next((int(char) for char in dtype if char.isdigit()), 0)
    return Opaque(f"quark-{dtype}", bits, 0, parts)
