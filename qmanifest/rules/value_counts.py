"""What the values of one stored tensor are, counted piece by piece.

Values are judged as integers: the greatest ones with a sign and without one tell
numbers from NaN and infinity several times faster than floats do. What a sound piece
cannot have is counted only where its greatest or least value shows that it is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from qmanifest.families import F8, WORDS
from qmanifest.schemes import Microscaling, Scaled, ZeroPoint

if TYPE_CHECKING:
    import numpy.typing as npt

    from qmanifest.manifest import Weight
    from qmanifest.tensors import TensorInfo

    Bits: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
    Octets: TypeAlias = npt.NDArray[np.uint8]
    _Format: TypeAlias = tuple[np.dtype[Any], np.dtype[Any], int, int]

_EXPONENTS: Final[dict[str, _Format]] = {
    "F16": (np.dtype("<u2"), np.dtype("<i2"), 0x7FFF, 0x7C00),
    "BF16": (np.dtype("<u2"), np.dtype("<i2"), 0x7FFF, 0x7F80),
    "F32": (np.dtype("<u4"), np.dtype("<i4"), 0x7FFFFFFF, 0x7F800000),
}
"""Per dtype: its bits as integers, all bits but the sign, and those of the exponent."""
_NO_SCALES: Final = ("U32", "I32", "I8")
"""Integers that are scales of no format: where they are, the dtype is wrong."""
_LEAST: Final = {"F16": 0x0002, "BF16": 0x33D7, "F32": 0x33D6BF95}
"""Per dtype: the bits of 1e-7, the least scale that MLX writes, rounded up."""
_BYTES: Final = (*WORDS, *F8, "F8_E8M0")
"""Dtypes of codes, and of bytes that hold a number format."""
_NAN: Final = {"e8m0": (0xFF, 0xFF), "e4m3": (0x7F, 0x7F)}
"""Per 8-bit float: which bits to look at, and what they are in a NaN."""


@dataclass(slots=True)
class Counts:
    """What the elements of one stored tensor are: as much as a rule asks for."""

    tensor: TensorInfo
    role: str
    """The part it plays; `kept` for a tensor that stays 16-bit."""
    weight: Weight | None
    elements: int = 0
    """Floats; of any other tensor, its bytes."""
    not_finite: int = 0
    """NaN and infinity; for bytes that hold a number format, its NaN codes."""
    zeros: int = 0
    """Scales that are zero, of either sign; not of scales in U8, where 0 is a power."""
    least: int = 0
    """Scales no larger than the least that MLX writes, which a constant group has."""
    out_of_range: int = 0
    """Zero points beyond the largest code."""
    written: bool = False
    """Whether any of the codes is not zero."""

    def add(self, piece: memoryview) -> None:
        """Count a piece: whole elements."""
        if self.tensor.dtype in _EXPONENTS:
            _floats(self, piece)
        elif self.tensor.dtype in _BYTES:
            _integers(self, piece)

    def merge(self, other: Counts) -> None:
        """Add what was counted in another part of the same tensor."""
        self.elements += other.elements
        self.not_finite += other.not_finite
        self.zeros += other.zeros
        self.least += other.least
        self.out_of_range += other.out_of_range
        self.written |= other.written


def _floats(counts: Counts, piece: memoryview) -> None:
    """Count a piece of floats."""
    word, signed, magnitude, exponent = _EXPONENTS[counts.tensor.dtype]
    bits = np.frombuffer(piece, word)
    counts.elements += bits.size
    negative = _most(bits) >= exponent + magnitude + 1  # the sign is the highest bit
    if negative or _most(bits.view(signed)) >= exponent:
        counts.not_finite += int(np.count_nonzero((bits & magnitude) >= exponent))
    if counts.role == "scales":
        _small_scales(counts, bits & word.type(magnitude))
    elif counts.role == "codes" and not counts.written:  # a wrong dtype, but not empty
        counts.written = _most(bits & word.type(magnitude)) > 0


def _most(array: npt.NDArray[Any]) -> int:
    """Find the greatest number; `ndarray.max` takes longer to start than to look."""
    return int(np.maximum.reduce(array, initial=0))


def _small_scales(counts: Counts, sizes: Bits) -> None:
    """Count scales that are zero or the least there is, by their bits without sign."""
    least = _LEAST[counts.tensor.dtype]
    lowest = sizes.min(initial=least + 1)
    if lowest == 0:
        counts.zeros += int(np.count_nonzero(sizes == 0))
    if lowest <= least:
        counts.least += int(np.count_nonzero(sizes <= least))


def _integers(counts: Counts, piece: memoryview) -> None:
    """Count a piece of words, or of bytes that hold a number format."""
    octets = np.frombuffer(piece, np.uint8)
    counts.elements += octets.size
    if counts.role == "codes" and not counts.written:
        counts.written = _most(octets) > 0
    if counts.role == "scales" and counts.tensor.dtype in _NO_SCALES:
        counts.zeros += octets.size - int(np.count_nonzero(octets))
    scheme = counts.weight.scheme if counts.weight else None
    if isinstance(scheme, (Microscaling, Scaled)):
        element = _element(scheme, counts.role, counts.tensor.dtype)
        counts.not_finite += _nan_bytes(octets, element)
    elif isinstance(scheme, ZeroPoint) and counts.role == "zeros":
        counts.out_of_range += _above(octets, scheme.bits)


def _element(scheme: Microscaling | Scaled, role: str, dtype: str) -> str | None:
    """Name the 8-bit number format of a part's bytes, if it has one.

    Scales of a wrong dtype (QM303) have none.
    """
    if role == "codes":
        return scheme.element
    if role != "scales":
        return None
    if isinstance(scheme, Scaled):
        return scheme.scale_format if dtype in scheme.scale else None
    return scheme.scale


def _nan_bytes(octets: Octets, element: str | None) -> int:
    """Count the bytes that are the NaN of an 8-bit float."""
    if element not in _NAN:
        return 0
    looked_at, nan = _NAN[element]
    if _most(octets) < 0x7F:  # noqa: PLR2004 - positive, and below any NaN
        return 0
    return int(np.count_nonzero((octets & np.uint8(looked_at)) == nan))


def _above(octets: Octets, bits: int) -> int:
    """Count the bytes that need more than `bits` bits."""
    if not _most(octets) >> bits:
        return 0
    return int(np.count_nonzero(octets >> np.uint8(bits)))
