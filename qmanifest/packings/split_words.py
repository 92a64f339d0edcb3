"""Layouts that cut the first axis of a table in equal parts, which share words.

With 4 bits, row `r` of a table of 2h rows shares its bytes with row `r + h`:

    u8-split-high   bit   7..4   3..0       u8-split-low   bit   7..4       3..0
                    code  [r]    [r + h]                   code  [r + h]    [r]

`i32-split-high` has ten 3-bit codes in the lowest 30 bits of a word, the first highest.
A table whose rows are no multiple of the parts is filled with rows of zeros.

Sources: https://github.com/mobiusml/hqq, `BitPack` (the first part highest);
https://github.com/huggingface/optimum-quanto, `pack_weights` (the first part lowest).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import I32_SPLIT_HIGH, U8_SPLIT_HIGH, U8_SPLIT_LOW
from qmanifest.packings.arrays import storage_dtype
from qmanifest.packings.base import require_codes, require_words

if TYPE_CHECKING:
    from qmanifest.layouts import SplitLayout
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class SplitWords:
    """Parts of a table, in the bits of the same words."""

    layout: SplitLayout

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack a table of codes `(rows, ...)` uint8: see `WholePacking.pack`."""
        shape = self.layout.packed_shape(codes.shape, bits)
        require_codes(codes, bits)
        word = storage_dtype(self.layout.word_dtype)
        words = np.zeros(shape, f"<u{word.itemsize}")
        for part, shift in enumerate(self._shifts(bits)):
            some = codes[part * shape[0] : (part + 1) * shape[0]]
            words[: len(some)] |= some.astype(words.dtype) << words.dtype.type(shift)
        return words.view(word)

    def restore(self, words: Words, bits: int, shape: Shape) -> Codes:
        """Unpack words into a table of codes: see `WholePacking.restore`."""
        require_words(self.layout, words, bits, shape)
        unsigned = np.ascontiguousarray(words).view(f"<u{words.itemsize}")
        kind, codes = unsigned.dtype.type, np.empty(shape, np.uint8)
        for part, shift in enumerate(self._shifts(bits)):
            some = codes[part * len(words) : (part + 1) * len(words)]
            some[...] = (unsigned[: len(some)] >> kind(shift)) & kind((1 << bits) - 1)
        return codes

    def _shifts(self, bits: int) -> tuple[int, ...]:
        """Lowest bit of every part, in the order of the parts."""
        shifts = tuple(range(0, self.layout.parts(bits) * bits, bits))
        return shifts[::-1] if self.layout.high_first else shifts


SPLIT: Final = tuple(map(SplitWords, (U8_SPLIT_HIGH, I32_SPLIT_HIGH, U8_SPLIT_LOW)))
