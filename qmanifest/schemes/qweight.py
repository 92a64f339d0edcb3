"""The schemes behind `.qweight`: GPTQ's and AWQ's, which share their tensors' names.

Sources: https://github.com/ModelCloud/GPTQModel, `PackableQuantLinear`;
https://github.com/casper-hansen/AutoAWQ, `WQLinear_GEMM` and its kin.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.schemes.integers import Integer, packed_zero, plain_zero
from qmanifest.schemes.opaque import Dim, Opaque, OpaquePart
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Callable

QWEIGHT: Final = ("I32", "I16", "I8", "I64")
"""Dtypes that a `.qweight` has in one layout or another."""


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
    zero = packed_zero(
        "i32-planes" if planes else "i32-lsb",
        plus=plus,
        signed=False,
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
        packed_zero("i32-awq", plus=0, signed=False),
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
        packed_zero("i32-lsb", plus=0, signed=False),
        "sequential",
        "float32",
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
        plain_zero("bias", FLOAT16),
        "sequential",
        "float32",
    )


@cache
def marlin(bits: int, group_size: int) -> Opaque:
    """Make the scheme of Marlin's tiles of 16 inputs, whose order is not decoded."""
    groups = Dim("K", group_size) if group_size else Dim("one")
    return Opaque(
        "marlin",
        bits,
        group_size,
        (
            OpaquePart("codes", ("I32",), (Dim("K", 16), Dim("N", 2, bits))),
            OpaquePart("scales", FLOAT16, (groups, Dim("N"))),
        ),
    )


@cache
def gptq_in_words(bits: int, group_size: int, word: int) -> Opaque:
    """Make GPTQ in words of 8, 16 or 64 bits, which are not decoded.

    Raises:
        ValueError: a word is no whole number of codes.

    """
    per_word, rest = divmod(word, bits)
    if rest:
        raise ValueError(f"words of {word} bits hold no whole codes of {bits}")
    groups = Dim("K", group_size) if group_size else Dim("one")
    dtypes = (f"I{word}",)
    return Opaque(
        f"gptq-int{word}",
        bits,
        group_size,
        (
            OpaquePart("codes", dtypes, (Dim("K", per_word), Dim("N"))),
            OpaquePart("scales", FLOAT, (groups, Dim("N"))),
            OpaquePart("zeros", dtypes, (groups, Dim("N", per_word))),
            OpaquePart("g_idx", ("I32",), (Dim("K"),), optional=True),
        ),
    )


@cache
def undecoded(layout: str, bits: int, group_size: int) -> Opaque:
    """Make the scheme of a layout of which nothing but its name is known here."""
    numbers = (*FLOAT, *QWEIGHT)
    return Opaque(
        layout,
        bits,
        group_size,
        (
            OpaquePart("codes", QWEIGHT, None),
            OpaquePart("scales", numbers, None, optional=True),
            OpaquePart("zeros", numbers, None, optional=True),
            OpaquePart("g_idx", QWEIGHT, None, optional=True),
        ),
    )


def _gptq(bits: int, group_size: int) -> Integer:
    return gptq(bits, group_size, plus=1)


RIVALS: Final[tuple[tuple[str, Callable[[int, int], Integer | Opaque]], ...]] = (
    ("GPTQ", _gptq),
    ("AWQ version gemm", awq_gemm),
    ("AWQ version gemv", awq_gemv),
    ("AWQ version gemv_fast", awq_gemv_fast),
    ("Marlin", marlin),
)
"""What a `.qweight` may be, whatever its label: a name, and the scheme by numbers."""
