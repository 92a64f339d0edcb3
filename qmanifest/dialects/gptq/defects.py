"""`gptq`, judged: what its keys say that no reader has, or that they say twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.documents.twice import contradictions
from qmanifest.dialects.gptq.schemes import BITS, LAYOUTS, WORDS
from qmanifest.dialects.lowering.dynamic import HEAD, KEEP
from qmanifest.families import GPTQ
from qmanifest.findings import DefectKind, Location, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.gptq import GptqConfig
    from qmanifest.findings import Defect
    from qmanifest.tensors import TensorIndex

TWICE: Final = (
    ("bits", "w_bit", "wbits"),
    ("group_size", "q_group_size"),
    ("quant_method", "method"),
    ("checkpoint_format", "format"),
)
"""Keys that say the same."""


def defects_of(
    document: GptqConfig, place: Place, index: TensorIndex | None
) -> Iterator[Defect]:
    """Find what is wrong with a document by itself, and with what it says of the head.

    Args:
        document: the document.
        place: where it lies.
        index: the stored tensors, where there are any.

    """
    yield from document.unknown(place)
    yield from contradictions(document, place, TWICE)
    yield from _widths(document, place)
    yield from _names(document, place)
    if index is not None:
        yield from _head(document, place, index)


def _widths(document: GptqConfig, place: Place) -> Iterator[Defect]:
    """Report the bits that no code has, of all modules and of some."""
    key = next((key for key in TWICE[0] if getattr(document, key) is not None), "bits")
    said: list[tuple[tuple[str, ...], int | None]] = [((key,), document.numbers().bits)]
    for pattern, own in (document.dynamic or {}).items():
        if own is not None and not pattern.startswith(KEEP):
            said.append((("dynamic", pattern, "bits"), own.bits))
    for parts, bits in said:
        if bits is not None and bits not in BITS:
            reason = f"gptq has bits 2 to 8; found bits {bits}"
            yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, *parts)


def _names(document: GptqConfig, place: Place) -> Iterator[Defect]:
    """Report a checkpoint format and a word that nobody knows."""
    layout = document.layout()
    if layout not in LAYOUTS:
        key = "checkpoint_format" if document.checkpoint_format else "format"
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"{key} {layout!r} is none that is known: readers cannot tell what is "
            "stored",
            key,
            expected=", ".join(LAYOUTS),
            actual=layout,
        )
    words = document.pack_dtype
    if words is not None and words.removeprefix("torch.") not in WORDS:
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"pack_dtype {words!r} is no integer that codes are packed in",
            "pack_dtype",
            expected=", ".join(WORDS),
            actual=words,
        )


def _head(document: GptqConfig, place: Place, index: TensorIndex) -> Iterator[Defect]:
    """Report a head that is stored quantized where the document says that it is not."""
    codes = index.get(HEAD + GPTQ.codes)
    if codes is None or document.lm_head or document.modules_in_block_to_quantize:
        return
    yield place.defect(
        DefectKind.CONTRADICTION,
        f"{codes.name!r} is stored ({codes}), and lm_head is not true: vLLM builds "
        "a head that is not quantized, and finds no weight for it",
        *((HEAD,) if document.lm_head is not None else ()),
        tensor=codes.name,
        also=(Location(codes.file, tensor=codes.name),),
        expected=True,
        actual=document.lm_head,
        hint="declare lm_head true",
        severity=Severity.WARNING,
    )
