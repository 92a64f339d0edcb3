"""16-bit floats by operations on float32 and its bits, in numpy.

numpy converts float16 one number at a time, in software where it was built for any
processor. What takes ten operations over a block is several times as fast.

To round, a number is added to the power of two by which its last bit of float16 becomes
the last bit of the sum; a float16 below `2**-14` has the last bit that `2**-14` has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from qmanifest.packings.arrays import AnyArray, Float32

    Bits = npt.NDArray[np.uint32]

HALF_RANGE: Final = 32768.0
"""What is no larger rounds to no infinity, nor does what it was rounded from."""
BEYOND: Final = 65536.0
"""More than any float16."""
_SIGN: Final = np.uint32(0x80000000)
_EXPONENT: Final = np.uint32(0x7F800000)
_LEAST: Final = np.uint32(113 << 23)
"""Bits of `2**-14`."""
_DROPPED: Final = np.uint32(13)
"""Bits of float32 below the last one of float16."""
_BIAS: Final = np.uint32(112)
"""By how much more float32 counts an exponent than float16 does."""


def widen_halves(halves: AnyArray) -> Float32:
    """Widen finite float16; infinities and NaN become `BEYOND` or more, with signs."""
    bits: Bits = halves.view("<u2").astype(np.uint32)
    signs = np.left_shift(bits, np.uint32(16))
    signs &= _SIGN
    bits &= np.uint32(0x7FFF)
    bits <<= _DROPPED
    values: Float32 = bits.view(np.float32)
    values *= np.float32(2.0 ** int(_BIAS))
    bits |= signs
    return values


def round_to_halves(values: Float32) -> None:
    """Round to float16 in place, half to even; none is larger than `HALF_RANGE`."""
    bits: Bits = values.view(np.uint32)
    signs = bits & _SIGN
    bits ^= signs
    powers = _powers(bits).view(np.float32)
    values += powers
    values -= powers
    bits |= signs


def to_halves(values: Float32) -> AnyArray:
    """Round as `round_to_halves`, and give float16; the values are lost."""
    bits: Bits = values.view(np.uint32)
    signs = bits >> np.uint32(16)
    signs &= np.uint32(0x8000)
    bits &= ~_SIGN
    powers = _powers(bits)
    values += powers.view(np.float32)
    bits -= powers  # how many times the last bit there is in the number
    powers >>= _DROPPED
    powers -= (_BIAS + _DROPPED + np.uint32(1)) << np.uint32(10)
    bits += powers  # its exponent; a carry from the count makes it the next one
    bits |= signs
    return bits.astype(np.uint16).view(np.float16)


def round_to_bfloat16(values: Float32) -> None:
    """Round to bfloat16 in place, half to even; NaN only as arithmetic makes it."""
    bits: Bits = values.view(np.uint32)
    half = bits >> np.uint32(16)
    half &= np.uint32(1)
    half += np.uint32(0x7FFF)
    bits += half
    bits &= np.uint32(0xFFFF0000)


def to_bfloat16(values: Float32) -> AnyArray:
    """Round as `round_to_bfloat16`, and give the bits; the values are lost."""
    round_to_bfloat16(values)
    return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _powers(bits: Bits) -> Bits:
    """Find the powers of two to add, as bits of float32, for positive numbers."""
    powers: Bits = bits & _EXPONENT
    # numpy's maximum of an array and one number takes one element at a time.
    least = np.full(powers.shape[-1], _LEAST)
    np.maximum(powers, least, out=powers)
    powers += _DROPPED << np.uint32(23)
    return powers
