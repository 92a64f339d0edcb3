"""`bitsandbytes`: NF4, FP4 and INT8, as transformers saves them.

The config says which; block size, dtype and shape lie in the bytes of `quant_state`.

Source: https://github.com/huggingface/transformers, `BitsAndBytesConfig`;
described in docs/dialects/bitsandbytes.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from qmanifest.dialects.base import (
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.bitsandbytes.said import Contradictions, impossible
from qmanifest.dialects.bitsandbytes.schemes import INT8, four_bit, names_of
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.one_model import components, keeps, modules_kept, only
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.errors import EmitError
from qmanifest.families import BNB4, BNB8
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Syntax
from qmanifest.schemes import Codebook

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.claims import Claim
    from qmanifest.evidence import Found
    from qmanifest.manifest import Entry


class BitsAndBytesConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str | None = None
    load_in_8bit: bool | None = None
    load_in_4bit: bool | None = None
    mirrored_8bit: bool | None = Field(default=None, alias="_load_in_8bit")
    """A second copy that transformers writes."""
    mirrored_4bit: bool | None = Field(default=None, alias="_load_in_4bit")
    """A second copy that transformers writes."""
    llm_int8_threshold: float | None = None
    llm_int8_skip_modules: Annotated[tuple[str, ...] | None, Field(strict=False)] = None
    """Modules that stay 16-bit; null stands for the head."""
    llm_int8_enable_fp32_cpu_offload: bool | None = None
    llm_int8_has_fp16_weight: bool | None = None
    bnb_4bit_compute_dtype: str | None = None
    bnb_4bit_quant_type: Literal["nf4", "fp4"] | None = None
    """Table of the 4-bit codes; `fp4` by default."""
    bnb_4bit_use_double_quant: bool | None = None
    """Whether the blocks' largest magnitudes are quantized too."""
    bnb_4bit_quant_storage: str | None = None
    """Dtype that packed bytes are viewed as; `uint8` by default."""


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return tuple(keys for keys, block in blocks(raw) if _is_bnb(block))


def _is_bnb(block: Raw) -> bool:
    method = method_of(block)
    if method is not None:
        return method in {"bitsandbytes", "bitsandbytes_4bit", "bitsandbytes_8bit"}
    return bool({"load_in_4bit", "load_in_8bit"} & {*block})


def _claims(document: BitsAndBytesConfig) -> list[Claim]:
    """List the modules that stay 16-bit, as transformers reads them."""
    return keeps(
        "bitsandbytes",
        "llm_int8_skip_modules",
        document.llm_int8_skip_modules,
        Syntax.BOUNDARY,
    )


def _lower(
    document: BitsAndBytesConfig, place: Place, indexes: Indexes | None
) -> Lowered:
    index = None if indexes is None else indexes.get("")
    contradictions = Contradictions(document, place)

    def make(name: str, found: Found, _said: Entry | None) -> Weight | None:
        if index is None or found.family not in {BNB4, BNB8}:
            return None
        if found.family is BNB8:
            contradictions.look(name, found, INT8)
            return Weight(name, INT8, place.pointer(), names=BNB8.names)
        names, table = names_of(name, index)
        absmax = index.get(names.name(name, "scales"))
        said = document.bnb_4bit_quant_type or "fp4"
        scheme = four_bit(table or said, found.codes, absmax)
        contradictions.look(name, found, scheme)
        return Weight(name, scheme, place.pointer(), names=names)

    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *impossible(document, place), *contradictions.defects())
    return Lowered(Manifest("bitsandbytes", place.file, (component,)), found)


def _emit(manifest: Manifest) -> BitsAndBytesConfig:
    component = only(manifest, "bitsandbytes")
    schemes = {weight.scheme for weight in component.weights}
    document: dict[str, object] = {"quant_method": "bitsandbytes"}
    tables = {each.table for each in schemes if isinstance(each, Codebook)}
    nested = {bool(each.nested) for each in schemes if isinstance(each, Codebook)}
    if schemes == {INT8}:
        document |= {"load_in_8bit": True, "load_in_4bit": False}
    elif all(isinstance(each, Codebook) for each in schemes) and len(tables) == 1:
        document |= {
            "load_in_8bit": False,
            "load_in_4bit": True,
            "bnb_4bit_quant_type": tables.pop(),
            "bnb_4bit_use_double_quant": nested == {True},
        }
    else:
        raise EmitError("bitsandbytes has one scheme of its own for all modules")
    kept = modules_kept(component)
    document["llm_int8_skip_modules"] = kept or None
    return emitted(BitsAndBytesConfig, document)


DIALECT: Final = Dialect(
    id="bitsandbytes",
    title="NF4, FP4 and INT8 of bitsandbytes, as transformers saves them",
    file_name="config.json",
    document=BitsAndBytesConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
