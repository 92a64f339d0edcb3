"""`u8-nibbles-blocks`: the bytes of `u8-nibbles`, in blocks of 16 along one more axis.

A block holds 32 codes with one scale; the even one of a pair is in the low nibble.

Source: https://github.com/huggingface/transformers, `_convert_moe_packed_tensors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.layouts import U8_BLOCKS
from qmanifest.packings import u8_nibbles
from qmanifest.packings.base import require_codes, require_words

if TYPE_CHECKING:
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape

layout: Final = U8_BLOCKS


def pack(codes: Codes, bits: int) -> Words:
    """Pack codes `(..., N, K)` uint8 into bytes `(..., N, K / 32, 16)`.

    Raises:
        LayoutError: K is no multiple of 32, or `bits` is not 4.
        PackingError: the codes are not uint8, or one does not fit in 4 bits.

    """
    shape = layout.packed_shape(codes.shape, bits)
    require_codes(codes, bits)
    return u8_nibbles.pack(codes, bits).reshape(shape)


def restore(words: Words, bits: int, shape: Shape) -> Codes:
    """Unpack bytes into codes of `shape`.

    Raises:
        PackingError: the bytes cannot be those of such a weight.

    """
    require_words(layout, words, bits, shape)
    octets = words.reshape(layout.row.packed_shape(shape, bits))
    return u8_nibbles.unpack(octets, bits, shape[-1])
