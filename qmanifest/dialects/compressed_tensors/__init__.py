"""`compressed-tensors`: what llm-compressor writes into `config.json`, and vLLM reads.

Config groups say how the modules are quantized that their targets name, `ignore` says
which stay as they are, and tensors show which are stored quantized.

Source: https://github.com/vllm-project/compressed-tensors,
`compressed_tensors/quantization/quant_config.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from qmanifest.dialects.base import (
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.compressed_tensors.args import (
    AnyGroup,
    QuantizationArgs,
    QuantizationScheme,
    SparsityConfig,
)
from qmanifest.dialects.compressed_tensors.defects import defects_of
from qmanifest.dialects.compressed_tensors.emit import emitted_groups
from qmanifest.dialects.compressed_tensors.lower import Said, lower_said
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.one_model import components

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest

METHOD: Final = "compressed-tensors"
OLD_KEY: Final = "compression_config"
"""The key of versions that had no `quant_method` yet."""


class CompressedTensorsConfig(TolerantDocument):
    """The document exactly as stored."""

    vocabulary: ClassVar[tuple[str, ...]] = (
        *QuantizationArgs.model_fields,
        *QuantizationScheme.model_fields,
    )

    quant_method: str | None = None
    """`compressed-tensors`."""
    format: str | None = None
    """How weights are stored; `mixed-precision` where groups say it."""
    quantization_status: (
        Literal["initialized", "calibration", "frozen", "compressed", "decompressed"]
        | None
    ) = None
    """How far quantization had got; weights are stored packed once `compressed`."""
    config_groups: dict[str, AnyGroup] | None = None
    """Groups by name: a scheme with its targets, or the targets of a preset."""
    ignore: list[str] | None = None
    """Modules that stay as they are: names, `re:` and a regular expression, classes."""
    kv_cache_scheme: QuantizationArgs | None = None
    """How keys and values are quantized in the cache."""
    global_compression_ratio: float | None = None
    """How much smaller the model became. A label."""
    sparsity_config: SparsityConfig | None = None
    """How pruned weights are stored; empty since 0.13."""
    moe_sparsity_config: dict[str, Any] | None = None
    """How many experts of each layer were left."""
    transform_config: dict[str, Any] | None = None
    """Rotations that the model applies when it runs."""
    version: str | None = None
    """Version of the library that wrote the config; 0.18 changed a packing."""
    run_compressed: bool | None = None
    """Only for the loader."""
    dequantize: bool | None = None
    """Only for the loader."""
    use_optimized_inference: bool | None = None
    """Only for the loader."""


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the blocks that say so, and those under the old key.

    Old versions put the config a level deeper, beside that of pruning.
    """
    found = []
    for keys, block in blocks(raw):
        method = method_of(block)
        inner = block.get("quantization_config")
        if method == METHOD:
            found.append(keys)
        elif method is None and keys and isinstance(inner, dict):
            if method_of(inner) == METHOD or keys[-1] == OLD_KEY:
                found.append((*keys, "quantization_config"))
        elif method is None and keys[-1:] == (OLD_KEY,):
            found.append(keys)
    return tuple(found)


def _said(document: CompressedTensorsConfig) -> Said:
    """Pick what the document says of one model."""
    sparsity = document.sparsity_config
    return Said(
        document.config_groups or {},
        document.ignore or [],
        document.format,
        sparsity.format if sparsity else None,
        document.version,
        document.kv_cache_scheme,
        document.quantization_status == "compressed",
    )


def _lower(
    document: CompressedTensorsConfig, place: Place, indexes: Indexes | None
) -> Lowered:
    said = _said(document)
    index = None if indexes is None else indexes.get("")
    manifest, found = lower_said(METHOD, said, place, index)
    defects = (*found, *document.unknown(place), *defects_of(said, place))
    return Lowered(manifest, defects)


def _emit(manifest: Manifest) -> CompressedTensorsConfig:
    return emitted(
        CompressedTensorsConfig,
        {
            "quant_method": METHOD,
            "quantization_status": "compressed",
            **emitted_groups(manifest),
        },
    )


DIALECT: Final = Dialect(
    id="compressed-tensors",
    title="compressed-tensors, as llm-compressor writes it",
    file_name="config.json",
    document=CompressedTensorsConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
    decodes="most",
)
