"""`fp8`: fine-grained FP8, as DeepSeek, Qwen and transformers write it.

Weights are 8-bit floats; a scale for each block of 128 x 128, or one for the whole
weight, lies beside them as `.weight_scale_inv`, which is multiplied despite its name.

Source: https://github.com/huggingface/transformers, `FineGrainedFP8Config`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from annotated_types import Gt
from pydantic import Field

from qmanifest.dialects.base import Dialect, Keys, Raw
from qmanifest.dialects.documents.blocks import by_method
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.fp8.lower import lower
from qmanifest.dialects.fp8.schemes import INPUTS
from qmanifest.dialects.lowering.one_model import components, modules_kept, only
from qmanifest.errors import EmitError
from qmanifest.schemes import Scaled

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest

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
    """Ends of names of embeddings that are FP8 too."""
    expert_dtype: str | None = None
    """`fp8`, the default, or `fp4`: then experts are MXFP4 in bytes."""
    dequantize: bool | None = None
    """Whether transformers makes 16-bit weights of it on loading."""
    quantized_layers: dict[str, dict[str, Any]] | None = None
    """Modules that ModelOpt quantized again, and how."""
    moe_quant_algo: str | None = None
    """ModelOpt's algorithm for the experts, once more."""
    quant_algo: str | None = None
    """`MIXED_PRECISION`, where ModelOpt quantized a part of it again."""
    kv_cache_quant_algo: str | None = None
    """What ModelOpt stores the cache of keys and values as."""
    group_size: int | None = None
    """Inputs that share a scale in what ModelOpt quantized again."""
    config_groups: dict[str, Any] | None = None
    """The same as compressed-tensors would say it."""
    ignore: Names = None
    """What ModelOpt left as it was: FP8, not 16-bit."""
    producer: dict[str, Any] | None = None
    """The writer's name and version."""

    @property
    def block(self) -> tuple[int, int] | None:
        """Outputs and inputs of a block; None for one scale per weight."""
        if self.weight_block_size or "weight_block_size" in self.model_fields_set:
            return self.weight_block_size
        return DEFAULT_BLOCK


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("fp8",))


def _emit(manifest: Manifest) -> Fp8Config:
    component = only(manifest, "fp8")
    said: set[tuple[int, int, str]] = set()
    for weight in component.weights:
        scheme = weight.scheme
        if not isinstance(scheme, Scaled) or scheme.pack != "f8-e4m3":
            raise EmitError(f"fp8 has no words for {weight.name!r}: {scheme}")
        said.add((scheme.spread.rows, scheme.spread.columns, scheme.scale_format))
    if len(said) > 1:
        raise EmitError(f"fp8 has one kind of block for all weights, not {len(said)}")
    rows, columns, scale = next(iter(said), (*DEFAULT_BLOCK, "float"))
    if (rows == 0) != (columns == 0):
        raise EmitError(f"fp8 has no words for blocks of {rows}x{columns}")
    parts = (part for weight in component.weights for part in weight.parts())
    static = any(p.role in INPUTS and not p.optional for p in parts)
    kept = modules_kept(component)
    document: dict[str, object] = {
        "quant_method": "fp8",
        "activation_scheme": "static" if static else "dynamic",
        "weight_block_size": [rows, columns] if rows else None,
        "scale_fmt": "ue8m0" if scale == "e8m0" else "float",
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
    components=components,
    lower=lower,
    emit=_emit,
    blocks=("quantization_config",),
    synonyms={"ignore": "exclude_modules"},
    akin=("modelopt",),
)
