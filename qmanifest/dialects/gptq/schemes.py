"""GPTQ's numbers of a module, and the scheme that they come to in each layout.

Sources: https://github.com/ModelCloud/GPTQModel, `quantization/config.py` and
`utils/model_dequant.py`; https://github.com/AutoGPTQ/AutoGPTQ, `qlinear_marlin.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.schemes.qweight import gptq, gptq_in_words, marlin, undecoded

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.dynamic import Override
    from qmanifest.schemes import Scheme

BITS: Final = (2, 3, 4, 5, 6, 7, 8)
PLANAR: Final = (5, 6, 7)
"""Widths that GPTQModel has in planes alone: with one of them, all layers are so."""
SPLIT: Final = (3, *PLANAR)
"""Widths that planes change; others have one plane, which is the bit stream."""
V1: Final = "gptq"
V2: Final = "gptq_v2"
PLANES: Final = "gptq_p"
MARLIN: Final = "marlin"
LAYOUTS: Final = (V1, V2, PLANES, MARLIN, "bitblas")
"""The checkpoint formats; the last two are recognised and not decoded."""
WORDS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
"""Values of `pack_dtype`, in bits."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is said of a module."""

    bits: int
    group_size: int
    sym: bool
    act: bool

    def but(self, override: Override | None) -> Numbers:
        """Replace what an override of `dynamic` says otherwise."""
        if override is None:
            return self
        own = override
        return Numbers(
            self.bits if own.bits is None else own.bits,
            self.group_size if own.group_size is None else own.group_size,
            self.sym if own.sym is None else own.sym,
            self.act if own.desc_act is None else own.desc_act,
        )


def scheme_of(numbers: Numbers, layout: str, word: int = 32) -> Scheme:
    """Name the scheme of a module.

    Args:
        numbers: what is said of it.
        layout: the checkpoint's format, in lower case.
        word: bits of a word, as `pack_dtype` says.

    """
    bits, group = numbers.bits, max(numbers.group_size, 0)
    if layout == MARLIN and bits in BITS:
        return marlin(bits, group)
    if layout not in {V1, V2, PLANES} or bits not in BITS:
        return undecoded(layout, bits, group)
    if word != WORDS["int32"]:
        whole = word % bits == 0
        return (gptq_in_words if whole else _words)(bits, group, word)
    return gptq(
        bits,
        group,
        plus=1 if layout == V1 else 0,
        planes=layout == PLANES and bits in SPLIT,
        symmetric=numbers.sym,
        # with one group for all of a row, no order changes anything
        listed=numbers.act and group > 0,
    )


def _words(bits: int, group: int, word: int) -> Scheme:
    """Name a layout of words that hold no whole codes."""
    return undecoded(f"gptq-int{word}", bits, group)
