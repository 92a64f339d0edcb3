"""`mxfp4`: gpt-oss, whose experts are MXFP4 and whose other layers stay 16-bit.

The config has no sizes: blocks are of 32, codes of 4 bits, always. Experts show by
`_blocks` beside `_scales`.

Source: https://github.com/huggingface/transformers, `integrations/mxfp4.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

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
from qmanifest.dialects.lowering.one_model import components, keeps, modules_kept, only
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.errors import EmitError
from qmanifest.families import GPT_OSS
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Syntax
from qmanifest.schemes.floats import E8M0, mxfp4

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from qmanifest.dialects.lowering.claims import Claim
    from qmanifest.evidence import Found
    from qmanifest.manifest import Entry

KEEPS: Final = "modules_to_not_convert"
EXPERTS: Final = ".experts."
"""What the names of experts hold."""
SCHEME: Final = mxfp4("u8-nibbles-blocks", E8M0, "e8m0")


class Mxfp4Config(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit: regular expressions, though they look like globs."""
    dequantize: bool | None = None
    """Whether transformers makes 16-bit weights of it on loading."""


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("mxfp4",))


def _claims(document: Mxfp4Config) -> list[Claim]:
    """List the modules that stay 16-bit, as transformers reads them."""
    return keeps("mxfp4", KEEPS, document.modules_to_not_convert, Syntax.BOUNDARY)


def _lower(document: Mxfp4Config, place: Place, indexes: Indexes | None) -> Lowered:
    def make(name: str, found: Found, _said: Entry | None) -> Weight | None:
        if found.family is not GPT_OSS:
            return None
        return Weight(name, SCHEME, place.pointer(), names=GPT_OSS.names)

    index = None if indexes is None else indexes.get("")
    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    stored = {weight.name for weight in component.weights}
    lost = tuple(_without_codes(index or (), stored, place))
    component = replace(component, weights=(*component.weights, *lost))
    found = (*defects, *document.unknown(place))
    return Lowered(Manifest("mxfp4", place.file, (component,)), found)


def _without_codes(
    names: Collection[str], stored: Collection[str], place: Place
) -> Iterator[Weight]:
    """Find the experts of which scales are stored, and no blocks of bytes."""
    parts = GPT_OSS.names
    for name in names:
        weight = name.removesuffix(parts.name("", "scales"))
        if weight != name and EXPERTS in name and weight not in stored:
            yield Weight(weight, SCHEME, place.pointer(), names=parts)


def _emit(manifest: Manifest) -> Mxfp4Config:
    component = only(manifest, "mxfp4")
    for weight in component.weights:
        if weight.scheme != SCHEME:
            raise EmitError(f"mxfp4 has no words for {weight.name!r}: {weight.scheme}")
    kept = modules_kept(component)
    document = {"quant_method": "mxfp4", "modules_to_not_convert": kept}
    return emitted(Mxfp4Config, document)


DIALECT: Final = Dialect(
    id="mxfp4",
    title="MXFP4 experts, as gpt-oss has them",
    file_name="config.json",
    document=Mxfp4Config,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
