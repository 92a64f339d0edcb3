"""The schemes behind `.qweight`: GPTQ's and AWQ's, which share their tensors' names.

Sources: https://github.com/ModelCloud/GPTQModel, `PackableQuantLinear`;
https://github.com/casper-hansen/AutoAWQ, `WQLinear_GEMM` and its kin.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.schemes.integers import Integer, Zero
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Callable

PLANAR: Final = (5, 6, 7)
"""Widths that GPTQ stores in planes whatever the checkpoint's format is called."""


@cache
def gptq(
    bits: int,
    group_size: int,
    *,
    plus: int,
    planes: bool = False,
    symmetric: bool = False,
    listed: bool = False,
) -> Integer:
    """Make a scheme of GPTQ's.

    Args:
        bits: width of a code, 2 to 8.
        group_size: inputs that share a scale; 0 for a whole row.
        plus: what readers add to a stored zero point; 1 in the first format.
        planes: whether words hold the low bits of 32 codes before their high ones.
        symmetric: whether every zero point is promised to be the middle code.
        listed: whether `g_idx` is needed to know an input's group.

    """
    planes = planes or bits in PLANAR
    zero = Zero(
        "code",
        ("I32",),
        "i32-planes" if planes else "i32-lsb",
        plus=0 if planes else plus,
        symmetric=symmetric,
    )
    return Integer(
        bits,
        "i32-planes-down" if planes else "i32-lsb-down",
        "unsigned",
        Spread(1, group_size, "transposed"),
        FLOAT,
        zero,
        "listed" if listed else "may-be-listed",
        "float32",
    )


@cache
def awq_gemm(bits: int, group_size: int) -> Integer:
    """Make AWQ's usual scheme: outputs interleaved by eights, inputs first."""
    return Integer(
        bits,
        "i32-awq-across",
        "unsigned",
        Spread(1, group_size, "transposed"),
        FLOAT16,
        Zero("code", ("I32",), "i32-awq"),
        "sequential",
        "scale",
    )


@cache
def awq_gemv(bits: int, group_size: int) -> Integer:
    """Make the scheme of AWQ's GEMV kernels: plain rows, scales padded with zeros."""
    return Integer(
        bits,
        "i32-lsb",
        "unsigned",
        Spread(1, group_size, "awq-rows"),
        FLOAT16,
        Zero("code", ("I32",), "i32-lsb"),
        "sequential",
        "scale",
    )


@cache
def awq_gemv_fast(bits: int, group_size: int) -> Integer:
    """Make the scheme of AWQ's GEMV_FAST and of llm-awq: zeros in weight units."""
    return Integer(
        bits,
        "i16-awq-fast",
        "unsigned",
        Spread(1, group_size, "awq-columns"),
        FLOAT16,
        Zero("bias", FLOAT16),
        "sequential",
        "scale",
    )


def _gptq(bits: int, group_size: int) -> Integer:
    return gptq(bits, group_size, plus=1)


RIVALS: Final[tuple[tuple[str, Callable[[int, int], Integer]], ...]] = (
    ("GPTQ", _gptq),
    ("AWQ version gemm", awq_gemm),
    ("AWQ version gemv", awq_gemv),
    ("AWQ version gemv_fast", awq_gemv_fast),
)
"""What a `.qweight` may be, whatever its label: a name, and the scheme by numbers."""
