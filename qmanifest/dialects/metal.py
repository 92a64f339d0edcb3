"""`metal`: MLX's layout as transformers writes it, with `.qbiases` for biases.

Source: https://github.com/huggingface/transformers,
`integrations/metal_quantization.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from annotated_types import Gt
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
from qmanifest.dtypes import FLOAT
from qmanifest.errors import EmitError
from qmanifest.families import METAL, MLX
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Syntax
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.claims import Claim
    from qmanifest.evidence import Found
    from qmanifest.manifest import Entry

KEEPS: Final = "modules_to_not_convert"


class MetalConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    bits: Literal[2, 4, 8] = 4
    """Bits of a code."""
    group_size: Annotated[int, Gt(0)] = 64
    """Inputs that share a scale and a bias."""
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit, as transformers reads them."""
    dequantize: bool | None = None
    """Whether transformers makes 16-bit weights of it on loading."""


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("metal",))


def _claims(document: MetalConfig) -> list[Claim]:
    return keeps("metal", KEEPS, document.modules_to_not_convert, Syntax.BOUNDARY)


def _lower(document: MetalConfig, place: Place, indexes: Indexes | None) -> Lowered:
    scheme = Affine(document.bits, document.group_size, FLOAT, "u32-lsb")

    def make(name: str, found: Found, _said: Entry | None) -> Weight | None:
        if found.family not in {METAL, MLX} or found.codes.dtype != "U32":
            return None  # MLX's is what one shows that has lost its biases
        return Weight(name, scheme, place.pointer(), names=METAL.names)

    index = None if indexes is None else indexes.get("")
    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *document.unknown(place))
    return Lowered(Manifest("metal", place.file, (component,)), found)


def _emit(manifest: Manifest) -> MetalConfig:
    component = only(manifest, "metal")
    schemes = {weight.scheme for weight in component.weights}
    if len(schemes) != 1:
        raise EmitError(f"metal has one scheme for all modules, not {len(schemes)}")
    (scheme,) = schemes
    if not isinstance(scheme, Affine) or scheme.pack != "u32-lsb":
        raise EmitError(f"metal has no words for {scheme}")
    document = {
        "quant_method": "metal",
        "bits": scheme.bits,
        "group_size": scheme.group_size,
        "modules_to_not_convert": modules_kept(component),
    }
    return emitted(MetalConfig, document)


DIALECT: Final = Dialect(
    id="metal",
    title="MLX's layout, as transformers writes it for Metal",
    file_name="config.json",
    document=MetalConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
