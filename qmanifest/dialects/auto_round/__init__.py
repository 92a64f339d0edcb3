"""`auto-round`: what Intel's AutoRound writes beside GPTQ's or AWQ's tensors.

`packing_format` says which of the two; `extra_config` says what differs by layer.

Source: https://github.com/intel/auto-round, `export/`; FORMATS 12 is retold in
docs/dialects/auto-round.md.
"""

from __future__ import annotations

from os.path import commonprefix
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeAlias

from annotated_types import Ge, Len
from pydantic import BaseModel, ConfigDict, Field

from qmanifest.dialects.auto_round.emit import emitted_values
from qmanifest.dialects.auto_round.lower import lower_auto_round
from qmanifest.dialects.auto_round.schemes import PACKINGS, Numbers
from qmanifest.dialects.base import (
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.documents.parsing import descend, emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.one_model import components

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest

METHODS: Final = ("auto-round", "auto_round", "intel/auto-round")
Side: TypeAlias = Annotated[int, Ge(1)]
GroupSize: TypeAlias = (
    Annotated[int, Ge(-1)] | Annotated[tuple[Side, ...], Len(2, 2), Field(strict=False)]
)
Number: TypeAlias = int | float | None
Names: TypeAlias = str | list[str | list[str]] | None


class Layer(BaseModel):
    """What a layer has instead of the document's values; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    bits: int | None = None
    """Bits of a code; 16 and more keep the layer as it is."""
    group_size: GroupSize | None = None
    """Inputs that share a scale and a zero point."""
    sym: bool | None = None
    """Whether every zero point is the middle code."""
    data_type: str | None = None
    """What a code is."""


class AutoRoundConfig(TolerantDocument):
    """The document exactly as stored."""

    vocabulary: ClassVar[tuple[str, ...]] = tuple(Layer.model_fields)

    quant_method: str
    """`auto-round`, or its old name `intel/auto-round`."""
    bits: int = 4
    """Bits of a code, 2 to 8."""
    group_size: GroupSize = 128
    """Inputs that share a scale and a zero point; -1 is all of a row, and for FP8 0 is
    the whole weight and two numbers are a tile of outputs and inputs."""
    sym: bool = True
    """Whether every zero point is the middle code."""
    data_type: str = "int"
    """What a code is: `int`, or a small float, `mx_fp`, `nv_fp`, `fp8`."""
    packing_format: str | None = None
    """Whose tensors these are, by default `auto_round:auto_gptq`."""
    backend: str | None = None
    """Old name of `packing_format`, where it begins with `auto_round`."""
    block_name_to_quantize: Names = None
    """What the names of quantized modules begin with: a list, or a text with commas."""
    to_quant_block_names: Names = None
    """Old name of `block_name_to_quantize`."""
    quant_block_list: list[str | list[str]] | None = None
    """The same, and counts before it; of an inner list, what its names share."""
    extra_config: dict[str, Layer] | None = None
    """What differs by layer: whole names first, then regular expressions anywhere."""
    act_bits: int | None = None
    act_group_size: Any = None
    act_sym: bool | None = None
    act_data_type: str | None = None
    act_dynamic: bool | None = None
    super_bits: int | None = None
    super_group_size: int | None = None
    fmt: str | None = None
    """`e4m3` or `e5m2` of FP8; a label, the dtypes of the tensors say it."""
    autoround_version: str | None = None
    rotation_config: Any = None
    """Rotations that the model applies when it runs."""
    transform_config: Any = None
    """The same, in other versions."""
    rotation_configs: Any = None
    """The same, in other versions."""
    supported_types: Any = None
    """Classes of the layers that are quantized."""
    iters: int | None = None
    nsamples: int | None = None
    batch_size: int | None = None
    seqlen: int | None = None
    lr: Number = None
    minmax_lr: Number = None
    enable_quanted_input: bool | None = None
    enable_minmax_tuning: bool | None = None
    enable_norm_bias_tuning: bool | None = None
    low_gpu_mem_usage: bool | None = None
    gradient_accumulate_steps: int | None = None
    scale_dtype: str | None = None
    dataset: Any = None
    amp: bool | None = None
    static_kv_dtype: str | None = None
    static_attention_dtype: str | None = None
    static_kv_granularity: str | None = None
    static_attention_granularity: str | None = None

    def blocks(self) -> tuple[str, ...]:
        """List what the names of quantized modules begin with; none means any."""
        if self.quant_block_list:
            lists = self.quant_block_list
            each = (one if isinstance(one, list) else [one] for one in lists)
            return tuple(commonprefix(one).rstrip(".") for one in each)  # noqa: RUF071 - of names, as AutoRound takes it
        named = self.block_name_to_quantize or self.to_quant_block_names or ()
        if isinstance(named, str):
            return tuple(name.strip() for name in named.split(","))
        flat = (each if isinstance(each, list) else [each] for each in named)
        return tuple(name for each in flat for name in each)

    def packing(self) -> str:
        """Name the format of the tensors, in lower case."""
        old = self.backend if (self.backend or "").startswith("auto_round") else None
        return (self.packing_format or old or PACKINGS[0]).lower()

    def numbers(self, name: str | None = None) -> Numbers:
        """Give what holds for all layers, or what `extra_config` says of one."""
        own = (self.extra_config or {})[name] if name is not None else Layer()
        return Numbers(
            self.bits if own.bits is None else own.bits,
            self.group_size if own.group_size is None else own.group_size,
            self.sym if own.sym is None else own.sym,
            own.data_type or self.data_type,
        )


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the blocks that say so, and that are no copies of MLX's block."""
    return tuple(
        keys
        for keys, block in blocks(raw)
        if method_of(block) in METHODS and not _is_mlx(raw, keys, block)
    )


def _is_mlx(raw: Raw, keys: Keys, block: Raw) -> bool:
    """Whether AutoRound wrote MLX's tensors, and MLX's own block beside it."""
    said = descend(raw, (*keys[:-1], "quantization"))
    return block.get("packing_format") == "mlx" and isinstance(said, dict)


def _lower(document: AutoRoundConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    return lower_auto_round(document, place, index)


def _emit(manifest: Manifest) -> AutoRoundConfig:
    return emitted(AutoRoundConfig, emitted_values(manifest))


DIALECT: Final = Dialect(
    id="auto-round",
    title="AutoRound, in the tensors of GPTQ or AWQ",
    file_name="config.json",
    document=AutoRoundConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    decodes="most",
    blocks=("quantization_config",),
    synonyms={"to_quant_block_names": "block_name_to_quantize"},
)
