"""Number formats of codes and block scales: width and the value of every code.

The tables are plain tuples, so that nothing here needs numpy. A code is an index
into `values`; the sign is the top bit of every float format but `e8m0`.

Source: OCP Microscaling Formats (MX) Specification v1.0, sections 5.3.1 to 5.4.1.
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


_E4M3_NAN: Final = 0x7F


def _e4m3_magnitude(code: int) -> float:
    exponent, mantissa = code >> 3, code & 7
    if code == _E4M3_NAN:
        return math.nan
    if exponent == 0:
        return math.ldexp(mantissa, -9)
    return math.ldexp(8 + mantissa, exponent - 10)


E2M1: Final = Element("e2m1", 4, _signed((0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)))
E4M3: Final = Element("e4m3", 8, _signed(tuple(map(_e4m3_magnitude, range(128)))))
"""`e4m3fn`: largest value 448, two NaN codes, no infinities."""
E8M0: Final = Element(
    "e8m0", 8, (*(math.ldexp(1.0, code - 127) for code in range(255)), math.nan)
)
"""A power of two: `2**(code - 127)`; code 255 is NaN."""

ELEMENTS: Final[dict[str, Element]] = {e.id: e for e in (E2M1, E4M3, E8M0)}
