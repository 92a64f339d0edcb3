"""What a packing is, and the checks that every packing makes.

A packing is a module, or an object of a class, with the members of one of the two
protocols below; mypy checks each against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from qmanifest.errors import LayoutError, PackingError
from qmanifest.packings.arrays import storage_dtype

if TYPE_CHECKING:
    from qmanifest.layouts import Layout, RowLayout
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.tensors import Shape


class RowPacking(Protocol):
    """Moves codes into the words of one layout and back, row by row."""

    @property
    def layout(self) -> RowLayout:
        """The layout whose bits this packing moves."""
        ...

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack codes `(..., n)` uint8 into words of `layout.packed_shape`.

        Raises:
            LayoutError: a row is not a whole number of words, or the layout does
                not hold codes of `bits` bits.
            PackingError: the codes are not uint8, or one does not fit in `bits`.

        """
        ...

    def unpack(self, words: Words, bits: int, count: int | None = None) -> Codes:
        """Unpack words `(..., m)` into the first `count` codes of every row, uint8.

        Without `count`, into all the whole codes that a row of words can hold.

        Raises:
            PackingError: the words are not of the layout's dtype, the layout does
                not hold codes of `bits` bits, or a row holds fewer than `count`.

        """
        ...


class WholePacking(Protocol):
    """Moves the codes of a whole weight into words and back."""

    @property
    def layout(self) -> Layout:
        """The layout whose bits this packing moves."""
        ...

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack codes of any shape that the layout takes into its words.

        Raises:
            LayoutError: the layout does not take that shape or width.
            PackingError: the codes are not uint8, or one does not fit in `bits`.

        """
        ...

    def restore(self, words: Words, bits: int, shape: Shape) -> Codes:
        """Unpack words into the codes of a weight of `shape`, uint8.

        Raises:
            PackingError: the words cannot be those of such a weight.

        """
        ...


def require_codes(codes: Codes, bits: int) -> None:
    """Refuse codes that are not uint8 or do not fit in `bits` bits.

    Raises:
        PackingError: they are not, or do not.

    """
    if codes.dtype != "u1":
        raise PackingError(f"codes are uint8, not {codes.dtype}")
    if codes.size and int(codes.max()) >= 1 << bits:
        raise PackingError(f"code {codes.max()} does not fit in {bits} bits")


def require_words(layout: Layout, words: Words, bits: int, shape: Shape) -> None:
    """Refuse words that are not those of codes of `shape`.

    Raises:
        PackingError: they are of another dtype or shape, or no words hold such codes.

    """
    if min(shape, default=0) < 0:
        raise PackingError(f"no weight has the shape {list(shape)}")
    try:
        expected = layout.packed_shape(shape, bits)
    except LayoutError as error:
        raise PackingError(str(error)) from error
    if words.dtype != storage_dtype(layout.word_dtype) or words.shape != expected:
        raise PackingError(
            f"{layout.id} holds {bits}-bit codes of {list(shape)} in "
            f"{layout.word_dtype} {list(expected)}, not in {words.dtype} "
            f"{list(words.shape)}"
        )


def codes_per_row(layout: RowLayout, words: Words, bits: int, count: int | None) -> int:
    """Find how many codes to take from every row of `words`.

    Raises:
        PackingError: the words cannot be of this layout, or hold fewer codes.

    """
    if bits not in layout.bits:
        raise PackingError(f"{layout.id} holds codes of {layout.bits} bits, not {bits}")
    if words.dtype != storage_dtype(layout.word_dtype) or not words.ndim:
        raise PackingError(
            f"{layout.id} expects rows of {layout.word_dtype} words, "
            f"not {words.dtype} {list(words.shape)}"
        )
    held = layout.codes_per_row(words.shape[-1], bits)
    if count is None:
        return held
    if not 0 <= count <= held:
        raise PackingError(
            f"a row of {words.shape[-1]} {layout.word_dtype} words holds {held} "
            f"codes of {bits} bits, not {count}"
        )
    return count
