"""bitsandbytes' layouts: codes of the flattened weight, the first in the high nibble.

    bit   7..4     3..0
    code  [2 * i]  [2 * i + 1]

Rows share bytes. The bytes are viewed as one of several dtypes, `u8-flat-high` and its
kin, in a column.

Source: https://github.com/bitsandbytes-foundation/bitsandbytes, `quantize_4bit`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import FLAT
from qmanifest.packings.arrays import storage_dtype
from qmanifest.packings.base import require_codes, require_words

if TYPE_CHECKING:
    from qmanifest.layouts import FlatLayout
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class FlatHigh:
    """Nibbles of a flattened weight."""

    layout: FlatLayout

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack codes uint8 of any shape: see `WholePacking.pack`."""
        shape = self.layout.packed_shape(codes.shape, bits)
        require_codes(codes, bits)
        flat = np.pad(codes.reshape(-1), (0, codes.size % 2))
        octets = (flat[0::2] << np.uint8(4)) | flat[1::2]
        return octets.view(storage_dtype(self.layout.word_dtype)).reshape(shape)

    def restore(self, words: Words, bits: int, shape: Shape) -> Codes:
        """Unpack words into codes of `shape`: see `WholePacking.restore`."""
        require_words(self.layout, words, bits, shape)
        octets = np.ascontiguousarray(words).reshape(-1).view(np.uint8)
        codes = np.empty((octets.size, 2), np.uint8)
        codes[:, 0] = octets >> np.uint8(4)
        codes[:, 1] = octets & np.uint8(15)
        return codes.reshape(-1)[: math.prod(shape)].reshape(shape)


FLAT_HIGH: Final = tuple(FlatHigh(layout) for layout in FLAT)
