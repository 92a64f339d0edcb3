"""`gptq`: what AutoGPTQ, GPTQModel and optimum write beside GPTQ's tensors.

It lies in `quantize_config.json`, in `config.json` under `quantization_config`, or in
both. What is quantized shows by `.qweight`; `dynamic` says what differs by module.

Source: https://github.com/ModelCloud/GPTQModel, `quantization/config.py`;
FORMATS 2 is retold in docs/dialects/gptq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from qmanifest.dialects.base import Dialect, Keys, Lowered, Place, Raw
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.gptq.defects import defects_of
from qmanifest.dialects.gptq.emit import emitted_values
from qmanifest.dialects.gptq.lower import lower_gptq
from qmanifest.dialects.gptq.schemes import (
    MARLIN,
    PLANAR,
    PLANES,
    V1,
    V2,
    WORDS,
    Numbers,
)
from qmanifest.dialects.lowering.dynamic import GroupSize, Override
from qmanifest.dialects.lowering.one_model import components

if TYPE_CHECKING:
    from qmanifest.dialects.base import Indexes
    from qmanifest.manifest import Manifest

LEGACY: Final = (MARLIN, "bitblas")
"""Old values of `quant_method` that name a checkpoint format."""
METHODS: Final = ("gptq", "gptqmodel", *LEGACY)
Number: TypeAlias = int | float | None


class GptqConfig(TolerantDocument):
    """The document exactly as stored."""

    vocabulary: ClassVar[tuple[str, ...]] = tuple(Override.model_fields)

    bits: int | None = None
    """Bits of a code, 2 to 8; by default 4."""
    w_bit: int | None = None
    """Old name of `bits`."""
    wbits: int | None = None
    """Old name of `bits`."""
    group_size: GroupSize | None = None
    """Inputs that share a scale and a zero point, by default 128; -1 is a whole row."""
    q_group_size: GroupSize | None = None
    """Old name of `group_size`."""
    desc_act: bool | None = None
    """Whether inputs were ordered by activation, so that `g_idx` says their group."""
    sym: bool | None = None
    """Whether every zero point is the middle code, by default true."""
    zero_point: bool | None = None
    """AWQ's name of what `sym` denies."""
    quant_method: str | None = None
    """`gptq`; old files name the checkpoint format here, `marlin` or `bitblas`."""
    method: str | None = None
    """GPTQModel's name of `quant_method`."""
    checkpoint_format: str | None = None
    """`gptq` (the default) stores zero points minus one, `gptq_v2` as are, `gptq_p` in
    planes; `marlin` and `bitblas` are layouts of kernels."""
    format: str | None = None
    """GPTQModel's name of `checkpoint_format`."""
    is_marlin_format: bool | None = None
    """Old way to say `checkpoint_format` `marlin`."""
    pack_dtype: str | None = None
    """Integers that codes are packed in, by default `int32`."""
    lm_head: bool | None = None
    """Whether the head is quantized too."""
    dynamic: dict[str, Override | None] | None = None
    """What differs by module: patterns that begin at a module's name, `-:` to skip."""
    modules_in_block_to_quantize: list[str | list[str]] | None = None
    """Parts of the names of all modules that are quantized, in steps or not."""
    block_name_to_quantize: str | None = None
    """optimum: where the decoder's blocks are."""
    static_groups: bool | None = None
    true_sequential: bool | None = None
    damp_percent: Number = None
    damp_auto_increment: Number = None
    mse: Number = None
    act_group_aware: bool | None = None
    rotation: Any = None
    """GPTQModel: how the model's inputs are rotated before they meet the weights."""
    activation: Any = None
    """GPTQModel: how inputs are quantized."""
    adapter: Any = None
    """GPTQModel: a LoRA beside the weights."""
    meta: dict[str, Any] | None = None
    """Who wrote it, and how; nothing of how it is stored."""
    dataset: Any = None
    tokenizer: Any = None
    batch_size: int | None = None
    pad_token_id: int | None = None
    module_name_preceding_first_block: Any = None
    model_seqlen: int | None = None
    use_cuda_fp16: bool | None = None
    use_exllama: bool | None = None
    disable_exllama: bool | None = None
    exllama_config: dict[str, Any] | None = None
    max_input_length: int | None = None
    cache_block_outputs: bool | None = None
    backend: str | None = None
    model_name_or_path: str | None = None
    model_file_base_name: str | None = None

    def numbers(self) -> Numbers:
        """Give what holds for every module that no pattern names."""
        sym = self.sym
        if sym is None and self.zero_point is not None:
            sym = not self.zero_point
        return Numbers(
            _first(4, self.bits, self.w_bit, self.wbits),
            _first(128, self.group_size, self.q_group_size),
            sym=sym is not False,
            act=bool(self.desc_act),
        )

    def layout(self) -> str:
        """Name the checkpoint's format, in lower case.

        Widths that have planes alone make it `gptq_p`, whatever it is called.
        """
        said = (self.checkpoint_format, self.format, _legacy(self.quant_method))
        name = next((each.lower() for each in said if each), V1)
        if self.is_marlin_format:
            return MARLIN
        overrides = (self.dynamic or {}).items()
        widths = {own.bits for key, own in overrides if own and key[:2] != "-:"}
        planar = not widths.union((self.numbers().bits,)).isdisjoint(PLANAR)
        return PLANES if planar and name in {V1, V2} else name

    def word(self) -> int:
        """Count the bits of a word of codes."""
        return WORDS.get((self.pack_dtype or "int32").removeprefix("torch."), 32)


def _first(default: int, *values: int | None) -> int:
    return next((value for value in values if value is not None), default)


def _legacy(method: str | None) -> str | None:
    """Take a method that is a format; None for others."""
    return method if method and method.lower() in LEGACY else None


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the blocks that say so, and a file of GPTQ's keys that does not."""
    return tuple(keys for keys, block in blocks(raw) if _is_gptq(keys, block))


def _is_gptq(keys: Keys, block: Raw) -> bool:
    method = method_of(block) or block.get("method")
    if isinstance(method, str):
        return method.lower() in METHODS
    widths = {"bits", "wbits"} & {*block}
    return not keys and bool(widths) and bool({"desc_act", "damp_percent"} & {*block})


def _lower(document: GptqConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    lowered = lower_gptq(document, place, index)
    found = (*lowered.defects, *defects_of(document, place, index))
    return Lowered(lowered.manifest, found)


def _emit(manifest: Manifest) -> GptqConfig:
    return emitted(GptqConfig, emitted_values(manifest))


DIALECT: Final = Dialect(
    id="gptq",
    title="GPTQ, as AutoGPTQ and GPTQModel write it",
    file_name="quantize_config.json",
    document=GptqConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    decodes="most",
    synonyms={
        "w_bit": "bits",
        "wbits": "bits",
        "q_group_size": "group_size",
        "format": "checkpoint_format",
        "method": "quant_method",
    },
)
