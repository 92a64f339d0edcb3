"""`fp8`: fine-grained FP8, as DeepSeek, Qwen and transformers write it.

Weights are 8-bit floats; a scale for each block of 128 x 128, or one for the whole
weight, lies beside them as `.weight_scale_inv`, which is multiplied despite its name.

Source: https://github.com/huggingface/transformers, `FineGrainedFP8Config`; FORMATS 5
is retold in docs/dialects/fp8.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from annotated_types import Gt
from pydantic import Field

from qmanifest.dialects.base import (
    ComponentNames,
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.blocks import by_method
from qmanifest.dialects.claims import Claim
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.dialects.tolerant import TolerantDocument
from qmanifest.errors import EmitError
from qmanifest.families import BLOCK_FP8, EXPERT_FP8, F8, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.schemes import Scaled
from qmanifest.schemes.floats import E8M0, fp8_blocks, fp8_whole, mxfp4, nvfp4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.evidence import Found
    from qmanifest.families import PartNames
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorIndex

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
DEFAULT_BLOCK: Final = (128, 128)
"""Outputs and inputs of a block where transformers finds no `weight_block_size`."""
Positive: TypeAlias = Annotated[int, Gt(0)]
Names: TypeAlias = Annotated[tuple[str, ...] | None, Field(strict=False)]


class Fp8Config(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    activation_scheme: str | None = None
    """`dynamic`, the default, or `static`: then weights have an input scale."""
    weight_block_size: Annotated[
        tuple[Positive, Positive] | None, Field(strict=False)
    ] = None
    """Outputs and inputs of a block; null is one scale for the whole weight."""
    fmt: str | None = None
    """For information: `e4m3`."""
    scale_fmt: str | None = None
    """`float`, the default, or `ue8m0`: scales are powers of two."""
    modules_to_not_convert: Names = None
    """Modules that stay 16-bit, as transformers reads them."""
    ignored_layers: Names = None
    """The same, as vLLM reads it: whole names."""
    modules_to_convert: Names = None
    expert_dtype: str | None = None
    """`fp8`, the default, or `fp4`: then experts are MXFP4 in bytes."""
    dequantize: bool | None = None
    quantized_layers: dict[str, dict[str, Any]] | None = None
    """Modules that ModelOpt quantized again, and how."""
    moe_quant_algo: str | None = None
    quant_algo: str | None = None
    kv_cache_quant_algo: str | None = None
    group_size: int | None = None
    config_groups: dict[str, Any] | None = None
    ignore: Names = None
    producer: dict[str, Any] | None = None

    @property
    def block(self) -> tuple[int, int] | None:
        """Outputs and inputs of a block; None for one scale per weight."""
        if self.weight_block_size or "weight_block_size" in self.model_fields_set:
            return self.weight_block_size
        return DEFAULT_BLOCK


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("fp8",))


def _components(_document: Fp8Config, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: Fp8Config) -> list[Claim]:
    """List the modules that stay 16-bit: transformers' list, and vLLM's."""
    lists = (
        ("modules_to_not_convert", document.modules_to_not_convert, Syntax.BOUNDARY),
        ("ignored_layers", document.ignored_layers, Syntax.EXACT),
    )
    return [
        Claim(
            *((key, number), Pattern(text, syntax), "keep", Severity.NOTE, SUFFIX),
            *read_by("fp8", key),
        )
        for key, texts, syntax in lists
        for number, text in enumerate(texts or ())
    ]


def _defects(document: Fp8Config, place: Place) -> Iterator[Defect]:
    """Find the values that no reader has."""
    yield from document.unknown(place)
    said = document.activation_scheme
    if said is not None and said not in {"dynamic", "static"}:
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"activation_scheme is {said!r}",
            "activation_scheme",
            expected="dynamic or static",
            actual=said,
        )


def _scheme(
    document: Fp8Config, names: PartNames, name: str, found: Found, index: TensorIndex
) -> Scheme:
    """Name a weight's scheme; what the config leaves open is as it is stored."""
    if found.codes.dtype not in F8:
        return nvfp4() if found.family is SCALED else mxfp4("i8-lsb")
    scales = index.get(names.name(name, "scales"))
    stored = () if scales is None else scales.shape
    if document.block is None or stored in {(), (1,)}:
        whole = scales is not None and stored in {(), (1,)}
        return fp8_whole("one" if whole and stored else "scalar")
    rows, columns = document.block
    if scales is not None and scales.dtype in E8M0:
        return fp8_blocks(rows, columns, E8M0, "e8m0")
    return fp8_blocks(rows, columns)


def _lower(document: Fp8Config, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")

    def make(name: str, found: Found, _said: Entry | None) -> Weight | None:
        if index is None or found.family not in {BLOCK_FP8, EXPERT_FP8, SCALED}:
            return None
        names = found.family.names
        if found.family is SCALED and names.name(name, "scales") not in index:
            names = BLOCK_FP8.names  # what it lacks is this dialect's scale
        scheme = _scheme(document, names, name, found, index)
        return Weight(name, scheme, place.pointer(), names=names)

    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("fp8", place.file, (component,)), found)


def _emit(manifest: Manifest) -> Fp8Config:
    if len(manifest.components) != 1:
        raise EmitError("fp8 describes one model")
    (component,) = manifest.components
    spreads = set()
    for weight in component.weights:
        scheme = weight.scheme
        if not isinstance(scheme, Scaled) or scheme.pack != "f8-e4m3":
            raise EmitError(f"fp8 has no words for {weight.name!r}: {scheme}")
        spreads.add((scheme.spread.rows, scheme.spread.columns))
    if len(spreads) > 1:
        raise EmitError(f"fp8 has one block size for all weights, not {len(spreads)}")
    block = next(iter(spreads), DEFAULT_BLOCK)
    kept = [each.name.removesuffix(SUFFIX) for each in component.kept]
    document: dict[str, object] = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": list(block) if all(block) else None,
    }
    if kept:
        document["modules_to_not_convert"] = kept
    return emitted(Fp8Config, document)


DIALECT: Final = Dialect(
    id="fp8",
    title="fine-grained FP8, as DeepSeek and transformers write it",
    file_name="config.json",
    document=Fp8Config,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
