"""Packings as data: the storage word, and the shape that packed codes have.

No numpy here, so that dialects, sizes and rules can do shape arithmetic alone. The
bits themselves are moved by `qmanifest.packings`, one module per layout.
To add a layout, add it to `LAYOUTS`; a contract test then asks for its packing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from qmanifest.errors import LayoutError

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


class Layout(msgspec.Struct, frozen=True):
    """Codes along the last axis as one little-endian bit stream in fixed words."""

    id: str
    word_dtype: str
    """safetensors dtype of the storage word."""
    word_bits: int
    bits: tuple[int, ...]
    """Code widths that the layout holds."""

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words that hold codes of `shape`, `bits` wide each.

        Raises:
            LayoutError: a row is not a whole number of words, or `bits` is not one
                of the layout's widths.

        """
        if bits not in self.bits:
            raise LayoutError(f"{self.id} holds codes of {self.bits} bits, not {bits}")
        if not shape:
            raise LayoutError(f"{self.id} packs rows; a scalar has none")
        words, rest = divmod(shape[-1] * bits, self.word_bits)
        if rest:
            raise LayoutError(
                f"a row of {shape[-1]} codes of {bits} bits is not a whole number "
                f"of {self.word_bits}-bit words"
            )
        return (*shape[:-1], words)

    def codes_per_row(self, words: int, bits: int) -> int:
        """Count the whole codes that a row of `words` words can hold."""
        return words * self.word_bits // bits


U32_LSB: Final = Layout("u32-lsb", "U32", 32, (1, 2, 3, 4, 5, 6, 7, 8))
U8_NIBBLES: Final = Layout("u8-nibbles", "U8", 8, (4,))
LAYOUTS: Final[dict[str, Layout]] = {each.id: each for each in (U32_LSB, U8_NIBBLES)}
