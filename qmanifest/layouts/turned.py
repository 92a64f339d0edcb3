"""Codes packed along another axis than the last, or stored the other way round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from qmanifest.errors import LayoutError
from qmanifest.layouts.rows import (
    I32_AWQ,
    I32_LSB,
    I32_PLANES,
    I32_WHOLE,
    U8_NIBBLES,
    RowLayout,
)

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class TurnedLayout:
    """A row layout along inputs or outputs, with either of the two stored first."""

    id: str
    row: RowLayout
    along: Literal["inputs", "outputs"]
    """The axis whose neighbours share a word."""
    first: Literal["inputs", "outputs"]
    """The axis that is stored first of the two."""

    @property
    def word_dtype(self) -> str:
        """Safetensors dtype of the storage word."""
        return self.row.word_dtype

    @property
    def bits(self) -> tuple[int, ...]:
        """Code widths that the layout holds."""
        return self.row.bits

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words that hold codes of `shape`, `bits` wide each.

        Raises:
            LayoutError: the weight is no matrix, or its words are not whole.

        """
        *lead, n, k = self._matrix(shape)
        lines = (n, k) if self.along == "inputs" else (k, n)
        return self._turned((*lead, *self.row.packed_shape(lines, bits)))

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Shape of the largest weight whose words have shape `packed`.

        Raises:
            LayoutError: the words are no matrix.

        """
        *lead, lines, words = self._turned(self._matrix(packed))
        codes = self.row.codes_per_row(words, bits)
        pair = (lines, codes) if self.along == "inputs" else (codes, lines)
        return (*lead, *pair)

    @property
    def is_turned(self) -> bool:
        """Whether the axis that words follow each other along is stored first."""
        return self.along == self.first

    def _turned(self, shape: Shape) -> Shape:
        """Exchange the last two axes where the packed axis is stored first."""
        return (*shape[:-2], shape[-1], shape[-2]) if self.is_turned else shape

    def _matrix(self, shape: Shape) -> Shape:
        if len(shape) < 2:  # noqa: PLR2004 - a matrix
            raise LayoutError(f"{self.id} packs matrices, not {list(shape)}")
        return shape


I32_LSB_DOWN: Final = TurnedLayout("i32-lsb-down", I32_LSB, "inputs", "inputs")
"""GPTQ: `(ceil(K * bits / 32), N)`."""
I32_PLANES_DOWN: Final = TurnedLayout("i32-planes-down", I32_PLANES, "inputs", "inputs")
"""GPTQ, planar."""
I32_AWQ_ACROSS: Final = TurnedLayout("i32-awq-across", I32_AWQ, "outputs", "inputs")
"""AWQ's GEMM: `(K, N / 8)`."""
I32_LSB_ACROSS: Final = TurnedLayout("i32-lsb-across", I32_LSB, "outputs", "inputs")
"""Quark in plain order: `(K, N / 8)`."""
I32_LSB_STACKED: Final = TurnedLayout("i32-lsb-stacked", I32_LSB, "outputs", "outputs")
"""Zero points of compressed-tensors: `(ceil(N * bits / 32), G)`."""
I32_WHOLE_STACKED: Final = TurnedLayout(
    "i32-whole-stacked", I32_WHOLE, "outputs", "outputs"
)
"""The same, before version 0.18."""
U8_NIBBLES_STACKED: Final = TurnedLayout(
    "u8-nibbles-stacked", U8_NIBBLES, "outputs", "outputs"
)
"""ModelOpt's INT4: `(N / 2, K)`."""
