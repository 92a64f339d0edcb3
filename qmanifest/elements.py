"""Number formats of codes and block scales: width and the value of every code.

The tables are plain tuples, so that nothing here needs numpy. A code is an index
into `values`; the sign is the top bit of every float format but `e8m0`.

Sources: OCP Microscaling Formats (MX) Specification v1.0, sections 5.3.1 to 5.4.1, for
`e2m1`, `e2m3` and `e8m0`; OCP 8-bit Floating Point Specification v1.0 for `e4m3` and
`e5m2`; https://github.com/bitsandbytes-foundation/bitsandbytes, `get_4bit_type`, for
`nf4` and `fp4`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Element:
    """One number format."""

    id: str
    bits: int
    values: tuple[float, ...]
    """`values[code]` is the number that `code` stands for; NaN where it is one."""

    @property
    def nan_codes(self) -> tuple[int, ...]:
        """The codes that are not a number."""
        return tuple(c for c, value in enumerate(self.values) if math.isnan(value))


def _signed(magnitudes: tuple[float, ...]) -> tuple[float, ...]:
    """Append the negatives: the sign is the bit above the magnitude."""
    return magnitudes + tuple(-value for value in magnitudes)


def _magnitude(code: int, mantissa_bits: int, bias: int) -> float:
    """Read exponent and mantissa; an exponent of 0 has no leading one."""
    exponent, mantissa = divmod(code, 1 << mantissa_bits)
    one = 1 << mantissa_bits if exponent else 0
    return math.ldexp(one + mantissa, max(exponent, 1) - bias - mantissa_bits)


def _magnitudes(exponent_bits: int, mantissa_bits: int) -> tuple[float, ...]:
    """List the numbers without a sign; the bias is the exponents' middle."""
    bias = (1 << exponent_bits - 1) - 1
    codes = range(1 << exponent_bits + mantissa_bits)
    return tuple(_magnitude(code, mantissa_bits, bias) for code in codes)


E2M1: Final = Element("e2m1", 4, _signed(_magnitudes(2, 1)))
E2M3: Final = Element("e2m3", 6, _signed(_magnitudes(2, 3)))
"""Largest value 7.5, no NaN and no infinity."""
E4M3: Final = Element("e4m3", 8, _signed((*_magnitudes(4, 3)[:-1], math.nan)))
"""`e4m3fn`: largest value 448, two NaN codes, no infinities."""
E5M2: Final = Element(
    "e5m2", 8, _signed((*_magnitudes(5, 2)[:-4], math.inf, *[math.nan] * 3))
)
"""As IEEE 754 has it: largest value 57344, infinities, six NaN codes."""
E8M0: Final = Element(
    "e8m0", 8, (*(math.ldexp(1.0, code - 127) for code in range(255)), math.nan)
)
"""A power of two: `2**(code - 127)`; code 255 is NaN."""
I8: Final = Element("i8", 8, tuple(map(float, (*range(128), *range(-128, 0)))))
"""Two's complement."""
NF4: Final = Element(
    "nf4",
    4,
    (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634),
        *(0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
        *(0.7229568362236023, 1.0),
    ),
)
"""Quantiles of a normal distribution; exact in float32."""
_TWELFTHS: Final = (0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0)
FP4: Final = Element(
    "fp4",
    4,
    (
        *(0.0, *(each / 12 for each in _TWELFTHS)),
        *(0.0, *(-each / 12 for each in _TWELFTHS)),
    ),
)
"""bitsandbytes' own 4-bit float, to be rounded to float32; both zeros are positive."""

ELEMENTS: Final[dict[str, Element]] = {
    each.id: each for each in (E2M1, E2M3, E4M3, E5M2, E8M0, I8, NF4, FP4)
}
