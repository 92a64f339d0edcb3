"""The dtypes of safetensors: their codes, widths, and names in numpy and torch.

To add one, add a row to `DTYPES`; everything else looks it up there.

Source: https://github.com/huggingface/safetensors, `safetensors/src/tensor.rs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Dtype:
    """One safetensors dtype."""

    code: str
    bits: int
    """Bits per element; below 8 several elements share a byte."""
    numpy: str | None = None
    """Little-endian numpy dtype, where numpy has one."""
    torch: str | None = None
    """Attribute of the `torch` module, where torch has one."""


_ROWS: Final = (
    Dtype("BOOL", 8, "?", "bool"),
    Dtype("F4", 4),
    Dtype("F6_E2M3", 6),
    Dtype("F6_E3M2", 6),
    Dtype("U8", 8, "u1", "uint8"),
    Dtype("I8", 8, "i1", "int8"),
    Dtype("F8_E5M2", 8, None, "float8_e5m2"),
    Dtype("F8_E4M3", 8, None, "float8_e4m3fn"),
    Dtype("F8_E8M0", 8, None, "float8_e8m0fnu"),
    Dtype("F8_E4M3FNUZ", 8, None, "float8_e4m3fnuz"),
    Dtype("F8_E5M2FNUZ", 8, None, "float8_e5m2fnuz"),
    Dtype("I16", 16, "<i2", "int16"),
    Dtype("U16", 16, "<u2", "uint16"),
    Dtype("F16", 16, "<f2", "float16"),
    Dtype("BF16", 16, None, "bfloat16"),
    Dtype("I32", 32, "<i4", "int32"),
    Dtype("U32", 32, "<u4", "uint32"),
    Dtype("F32", 32, "<f4", "float32"),
    Dtype("C64", 64, "<c8", "complex64"),
    Dtype("F64", 64, "<f8", "float64"),
    Dtype("I64", 64, "<i8", "int64"),
    Dtype("U64", 64, "<u8", "uint64"),
)
DTYPES: Final[dict[str, Dtype]] = {row.code: row for row in _ROWS}

FLOAT16: Final = ("F16", "BF16")
"""The 16-bit floats: what a kept tensor and a founding dialect's scales may be."""
FLOAT: Final = ("F16", "BF16", "F32")
"""The floats that MLX stores scales and biases in."""


def elements(shape: tuple[int, ...]) -> int:
    """Count the elements of a tensor; a scalar has one."""
    return math.prod(shape)


def nbytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Count the bytes of a tensor, exactly; sub-byte dtypes round up to a byte."""
    return -(-math.prod(shape) * DTYPES[dtype].bits // 8)
