"""Codes along the last axis, in words that follow each other along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.errors import LayoutError

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

EVERY_WIDTH: Final = (1, 2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Codes along the last axis, as one little-endian bit stream in fixed words."""

    id: str
    word_dtype: str
    """safetensors dtype of the storage word."""
    word_bits: int
    bits: tuple[int, ...]
    """Code widths that the layout holds."""
    padded: bool = False
    """Whether a row may end inside a word, whose other bits are zero."""
    straddles: bool = True
    """Whether a code may begin in one word and end in the next."""
    unit: int = 1
    """Codes that only go together: a row is a multiple of them."""

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
        if not self.straddles:
            return (*shape[:-1], -(-shape[-1] // (self.word_bits // bits)))
        if shape[-1] % self.unit:
            raise LayoutError(
                f"a row of {shape[-1]} codes is no multiple of the {self.unit} that "
                f"{self.id} packs together"
            )
        words, rest = divmod(shape[-1] * bits, self.word_bits)
        if rest and not self.padded:
            raise LayoutError(
                f"a row of {shape[-1]} codes of {bits} bits is not a whole number "
                f"of {self.word_bits}-bit words"
            )
        return (*shape[:-1], words + bool(rest))

    def codes_per_row(self, words: int, bits: int) -> int:
        """Count the whole codes that a row of `words` words can hold."""
        if not self.straddles:
            return words * (self.word_bits // bits)
        codes = words * self.word_bits // bits
        return codes - codes % self.unit

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Shape of the largest weight whose words have shape `packed`.

        Raises:
            LayoutError: a scalar holds no codes.

        """
        if not packed:
            raise LayoutError(f"{self.id} packs rows; a scalar has none")
        return (*packed[:-1], self.codes_per_row(packed[-1], bits))


@dataclass(frozen=True, slots=True)
class PlainLayout:
    """One code per element, in the shape of the weight."""

    id: str
    word_dtype: str
    bits: tuple[int, ...]

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Give `shape` as it is.

        Raises:
            LayoutError: `bits` is not one of the layout's widths.

        """
        if bits not in self.bits:
            raise LayoutError(f"{self.id} holds codes of {self.bits} bits, not {bits}")
        return shape

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Give `packed` as it is.

        Raises:
            LayoutError: `bits` is not one of the layout's widths.

        """
        return self.packed_shape(packed, bits)


U32_LSB: Final = RowLayout("u32-lsb", "U32", 32, EVERY_WIDTH)
U8_NIBBLES: Final = RowLayout("u8-nibbles", "U8", 8, (4,))
I32_LSB: Final = RowLayout("i32-lsb", "I32", 32, EVERY_WIDTH, padded=True)
I32_WHOLE: Final = RowLayout("i32-whole", "I32", 32, EVERY_WIDTH, straddles=False)
"""As many whole codes as a word has room for; its last bits stay unused."""
I32_PLANES: Final = RowLayout("i32-planes", "I32", 32, EVERY_WIDTH[1:], unit=32)
"""32 codes in `bits` words, which hold the low bits of all before the high ones."""
I32_AWQ: Final = RowLayout("i32-awq", "I32", 32, (4,))
"""Eight codes in a word, in the order 0, 2, 4, 6, 1, 3, 5, 7."""
U8_LSB: Final = RowLayout("u8-lsb", "U8", 8, EVERY_WIDTH)
I8_LSB: Final = RowLayout("i8-lsb", "I8", 8, EVERY_WIDTH)
I8: Final = PlainLayout("i8", "I8", EVERY_WIDTH)
U8: Final = PlainLayout("u8", "U8", EVERY_WIDTH)
F8_E4M3: Final = PlainLayout("f8-e4m3", "F8_E4M3", (8,))
F8_E5M2: Final = PlainLayout("f8-e5m2", "F8_E5M2", (8,))
