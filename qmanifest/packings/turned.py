"""Layouts that pack along another axis, or store the packed axis first.

Rows of a row packing run along the inputs or the outputs of a matrix, and of the two
axes that come out of it the packed one is stored last or first. GPTQ's `i32-lsb-down`:

    row r, column n:  codes [n, 8 * r] ... [n, 8 * r + 7] of 4 bits, the first lowest

Sources: https://github.com/AutoGPTQ/AutoGPTQ, `QuantLinear.pack`;
https://github.com/casper-hansen/AutoAWQ, `WQLinear_GEMM`;
https://github.com/vllm-project/compressed-tensors, `pack_to_int32` with `packed_dim=0`;
https://github.com/NVIDIA/Model-Optimizer, `pack_int4_in_uint8`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.layouts import (
    I32_AWQ_ACROSS,
    I32_LSB_ACROSS,
    I32_LSB_DOWN,
    I32_LSB_STACKED,
    I32_PLANES_DOWN,
    I32_WHOLE_STACKED,
    U8_NIBBLES_STACKED,
)
from qmanifest.packings import awq, planes, u8_nibbles, whole_words
from qmanifest.packings.base import require_codes, require_words
from qmanifest.packings.padded_streams import I32_STREAM

if TYPE_CHECKING:
    from qmanifest.layouts import TurnedLayout
    from qmanifest.packings.arrays import Codes, Words
    from qmanifest.packings.base import RowPacking
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True)
class Turned:
    """A row packing along a chosen axis."""

    layout: TurnedLayout
    rows: RowPacking

    def pack(self, codes: Codes, bits: int) -> Words:
        """Pack codes `(..., N, K)` uint8: see `WholePacking.pack`."""
        shape = self.layout.packed_shape(codes.shape, bits)
        require_codes(codes, bits)
        words = self.rows.pack(self._along(codes), bits)
        words = words.swapaxes(-1, -2) if self.layout.is_turned else words
        return np.ascontiguousarray(words).reshape(shape)

    def restore(self, words: Words, bits: int, shape: Shape) -> Codes:
        """Unpack words into codes of `shape`: see `WholePacking.restore`."""
        require_words(self.layout, words, bits, shape)
        lines = words.swapaxes(-1, -2) if self.layout.is_turned else words
        count = shape[-1] if self.layout.along == "inputs" else shape[-2]
        codes = self._along(self.rows.unpack(lines, bits, count))
        return np.ascontiguousarray(codes)

    def _along(self, codes: Codes) -> Codes:
        """Exchange inputs and outputs where rows run along the outputs."""
        return codes if self.layout.along == "inputs" else codes.swapaxes(-1, -2)


TURNED: Final = (
    Turned(I32_LSB_DOWN, I32_STREAM),
    Turned(I32_PLANES_DOWN, planes),
    Turned(I32_AWQ_ACROSS, awq),
    Turned(I32_LSB_ACROSS, I32_STREAM),
    Turned(I32_LSB_STACKED, I32_STREAM),
    Turned(I32_WHOLE_STACKED, whole_words),
    Turned(U8_NIBBLES_STACKED, u8_nibbles),
)
