"""One code per element: bytes, small integers in two's complement, 8-bit floats.

A signed element of `i8` becomes the code of its lowest `bits` bits, and back. An
element that needs more bits than the scheme says is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.errors import PackingError
from qmanifest.layouts import F8_E4M3, F8_E5M2, I8, U8
from qmanifest.packings.base import require_codes, require_words

if TYPE_CHECKING:
    from qmanifest.layouts import PlainLayout
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class Plain:
    """Codes as they are."""

    layout: PlainLayout

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack codes uint8 of any shape: see `WholePacking.pack`."""
        self.layout.packed_shape(codes.shape, bits)
        require_codes(codes, bits)
        if self.layout.word_dtype != "I8":
            return codes.copy()
        # The sign bit of the code becomes that of the byte, and fills what is above.
        return (codes << np.uint8(8 - bits)).view(np.int8) >> np.int8(8 - bits)

    def restore(self, words: Words, bits: int, shape: Shape) -> Codes:
        """Find the codes of a weight: see `WholePacking.restore`."""
        require_words(self.layout, words, bits, shape)
        low, high = 0, (1 << bits) - 1
        if words.dtype.kind == "i":
            low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        if words.size and (int(words.min()) < low or int(words.max()) > high):
            raise PackingError(
                f"{bits}-bit elements are {low} to {high}; found "
                f"{int(words.min())} to {int(words.max())}"
            )
        octets = np.ascontiguousarray(words).view(np.uint8)
        return octets & np.uint8((1 << bits) - 1)


PLAIN: Final = (Plain(I8), Plain(U8), Plain(F8_E4M3), Plain(F8_E5M2))
