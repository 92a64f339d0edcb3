"""`i32-lsb`, `u8-lsb` and `i8-lsb`: the bit stream of `u32-lsb`, in other words.

A row of int32 words may end inside a word, whose other bits are zero. A row of bytes
fills them. For bits=6 in bytes, as FP6 is stored:

    byte  0          1                 2
    bit   7..6 5..0  7..4      3..0    7..2  1..0
    code  [1]  [0]   [2] low   [1]     [3]   [2] high

Source: https://github.com/vllm-project/compressed-tensors, `pack_to_int32`, from
version 0.18 on; GPTQ has the same words along another axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import I8_LSB, I32_LSB, U8_LSB
from qmanifest.packings.arrays import storage_dtype
from qmanifest.packings.base import codes_per_row, require_codes
from qmanifest.packings.rows import as_table
from qmanifest.packings.streams import join, split

if TYPE_CHECKING:
    from qmanifest.layouts import RowLayout
    from qmanifest.packings.arrays import Codes, Words


@dataclass(frozen=True, slots=True)
class Stream:
    """A row of codes as one little-endian bit stream."""

    layout: RowLayout

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack codes `(..., n)` uint8: see `RowPacking.pack`."""
        shape = self.layout.packed_shape(codes.shape, bits)
        require_codes(codes, bits)
        octets = join(as_table(codes), bits)
        wanted = shape[-1] * self.layout.word_bits // 8
        missing = max(0, wanted - octets.shape[1])
        octets = np.pad(octets, ((0, 0), (0, missing)))[:, :wanted]
        word = storage_dtype(self.layout.word_dtype)
        return np.ascontiguousarray(octets).view(word).reshape(shape)

    def unpack(self, words: Words, bits: int, count: int | None = None) -> Codes:
        """Unpack words `(..., m)`: see `RowPacking.unpack`."""
        count = codes_per_row(self.layout, words, bits, count)
        octets = np.ascontiguousarray(as_table(words)).view(np.uint8)
        return split(octets, bits, count).reshape(*words.shape[:-1], count)


I32_STREAM: Final = Stream(I32_LSB)
U8_STREAM: Final = Stream(U8_LSB)
I8_STREAM: Final = Stream(I8_LSB)
