"""Layouts that are no rows of words: flat, split, blocked, interleaved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import DTYPES
from qmanifest.errors import LayoutError
from qmanifest.layouts.rows import U8_NIBBLES, RowLayout

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class FlatLayout:
    """4-bit codes of the flattened weight, two to a byte, in a column of words."""

    id: str
    word_dtype: str
    """The dtype that the bytes are viewed as."""
    bits: tuple[int, ...] = (4,)

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words: `(bytes / itemsize, 1)`.

        Raises:
            LayoutError: `bits` is not 4, or the bytes fill no whole words.

        """
        if bits not in self.bits:
            raise LayoutError(f"{self.id} holds codes of {self.bits} bits, not {bits}")
        octets = -(-math.prod(shape) // 2)
        words, rest = divmod(octets, DTYPES[self.word_dtype].bits // 8)
        if rest:
            raise LayoutError(f"{octets} bytes are no whole {self.word_dtype} words")
        return (words, 1)

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Refuse: of a flattened weight the shape does not show.

        Raises:
            LayoutError: always.

        """
        raise LayoutError(f"{list(packed)} of {bits}-bit codes are flattened")


@dataclass(frozen=True, slots=True)
class SplitLayout:
    """The first axis split in equal parts, whose codes share words one by one.

    It packs the table of blocks, `Spread`'s flat forms, and not the weight itself.
    """

    id: str
    word_dtype: str
    word_bits: int
    bits: tuple[int, ...]
    high_first: bool
    """Whether the first part has the highest bits of the word in use."""

    def parts(self, bits: int) -> int:
        """Count the codes of a word."""
        return self.word_bits // bits

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words of a table of blocks: the first axis over the parts.

        Raises:
            LayoutError: `bits` is no width of the layout, or a scalar is packed.

        """
        if bits not in self.bits:
            raise LayoutError(f"{self.id} holds codes of {self.bits} bits, not {bits}")
        if not shape:
            raise LayoutError(f"{self.id} packs tables; a scalar is none")
        return (-(-shape[0] // self.parts(bits)), *shape[1:])

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Refuse: of a table of blocks the weight's shape does not show.

        Raises:
            LayoutError: always.

        """
        raise LayoutError(f"{list(packed)} of {bits}-bit codes are a table of blocks")


@dataclass(frozen=True, slots=True)
class BlockedLayout:
    """A row layout whose words are cut into blocks along one more axis."""

    id: str
    row: RowLayout
    words: int
    """Words of a block."""

    @property
    def word_dtype(self) -> str:
        """Safetensors dtype of the storage word."""
        return self.row.word_dtype

    @property
    def bits(self) -> tuple[int, ...]:
        """Code widths that the layout holds."""
        return self.row.bits

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words: `(..., words / block, block)`.

        Raises:
            LayoutError: a row is not a whole number of blocks.

        """
        *lead, words = self.row.packed_shape(shape, bits)
        blocks, rest = divmod(words, self.words)
        if rest:
            raise LayoutError(f"a row of {words} words is no whole number of blocks")
        return (*lead, blocks, self.words)

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Shape of the weight whose words have shape `packed`.

        Raises:
            LayoutError: the last axis is no block.

        """
        if len(packed) < 2 or packed[-1] != self.words:  # noqa: PLR2004 - blocks of words
            raise LayoutError(f"{self.id} ends in blocks of {self.words} words")
        return self.row.logical_shape((*packed[:-2], packed[-2] * self.words), bits)


@dataclass(frozen=True, slots=True)
class InterleavedLayout:
    """AWQ's GEMV_FAST: rows in fours and inputs in blocks of 64, both interleaved."""

    id: str = "i16-awq-fast"
    word_dtype: str = "I16"
    bits: tuple[int, ...] = (4,)

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words: `(N / 4, K)`.

        Raises:
            LayoutError: N is no multiple of 4, K none of 64, or `bits` is not 4.

        """
        if bits not in self.bits or len(shape) != 2:  # noqa: PLR2004 - a matrix
            raise LayoutError(f"{self.id} holds matrices of 4-bit codes")
        if shape[0] % 4 or shape[1] % 64:
            raise LayoutError(f"{self.id} takes outputs in fours and inputs in 64s")
        return (shape[0] // 4, shape[1])

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Shape of the weight whose words have shape `packed`.

        Raises:
            LayoutError: the words are no matrix.

        """
        if bits not in self.bits or len(packed) != 2:  # noqa: PLR2004 - a matrix
            raise LayoutError(f"{self.id} holds matrices of 4-bit codes")
        return (packed[0] * 4, packed[1])


STORAGES: Final = ("U8", "I8", "F16", "BF16", "F32", "F64")
"""Dtypes that bitsandbytes views packed bytes as."""
FLAT: Final = tuple(
    FlatLayout(f"{dtype.lower()}-flat-high", dtype) for dtype in STORAGES
)
"""bitsandbytes: the first code of a byte in the high nibble."""
U8_SPLIT_HIGH: Final = SplitLayout("u8-split-high", "U8", 8, (1, 2, 4, 5, 6, 8), True)  # noqa: FBT003 - the field above
"""HQQ; codes of 5 and 6 bits have a byte each."""
I32_SPLIT_HIGH: Final = SplitLayout("i32-split-high", "I32", 30, (3,), True)  # noqa: FBT003 - the field above
"""HQQ's ten 3-bit codes in a word of 32 bits, of which the highest two stay unused."""
U8_SPLIT_LOW: Final = SplitLayout("u8-split-low", "U8", 8, (2, 4), False)  # noqa: FBT003 - the field above
"""quanto."""
U8_BLOCKS: Final = BlockedLayout("u8-nibbles-blocks", U8_NIBBLES, 16)
"""gpt-oss: blocks of 32 codes."""
I16_AWQ_FAST: Final = InterleavedLayout()
