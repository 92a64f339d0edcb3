"""`gemma`: Gemma as it was trained to be quantized, in transformers' words.

Codes of 2, 4 or 8 bits have one scale for each output. Regular expressions over the
names of modules give widths of their own; embeddings are quantized on demand.

Source: https://github.com/huggingface/transformers, `GemmaQuantizationConfig` and
`integrations/gemma_quant.py`; FORMATS 17 is retold in docs/dialects/gemma.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from qmanifest.dialects.base import (
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.documents.blocks import by_method
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.gemma.emit import BITS, emit_gemma
from qmanifest.dialects.gemma.lower import lower_gemma
from qmanifest.dialects.lowering.one_model import components

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest


class Override(BaseModel):
    """What the modules of a pattern have instead; transformers refuses other keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True
    )

    num_bits: int | None = None
    """2, 4 or 8; absent means that of the document."""


class GemmaConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    num_bits: int | None = None
    """Bits of a code where no pattern says otherwise: 2, 4 or 8, by default 4."""
    quantize_embeddings: bool | None = None
    """Whether embeddings are quantized too; by default they are not."""
    module_quant_configs: dict[str, Override] | None = None
    """Regular expressions for any part of a module's name, and what it has instead."""
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit, as transformers reads them."""

    def bits(self, pattern: str | None = None) -> int:
        """Give the width of the modules of a pattern, or of those without one."""
        own = (self.module_quant_configs or {}).get(pattern) if pattern else None
        said = own.num_bits if own else None
        return next((b for b in (said, self.num_bits) if b is not None), BITS)


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("gemma",))


def _lower(document: GemmaConfig, place: Place, indexes: Indexes | None) -> Lowered:
    return lower_gemma(document, place, None if indexes is None else indexes.get(""))


def _emit(manifest: Manifest) -> GemmaConfig:
    return emitted(GemmaConfig, emit_gemma(manifest))


DIALECT: Final = Dialect(
    id="gemma",
    title="Gemma, quantized in training",
    file_name="config.json",
    document=GemmaConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
