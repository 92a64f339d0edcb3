"""`gptq`: what AutoGPTQ, GPTQModel and optimum write beside GPTQ's tensors.

It lies in `quantize_config.json`, in `config.json` under `quantization_config`, or in
both. What is quantized shows by `.qweight`; `dynamic` says what differs by module.

Source: https://github.com/ModelCloud/GPTQModel, `quantization/config.py`;
FORMATS 2 is retold in docs/dialects/gptq.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

from annotated_types import Ge
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
from qmanifest.dialects.blocks import blocks, method_of
from qmanifest.dialects.claims import Claim
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.dialects.tolerant import TolerantDocument
from qmanifest.errors import EmitError
from qmanifest.families import GPTQ
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes import Integer
from qmanifest.schemes.qweight import gptq

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme

T = TypeVar("T")
METHODS: Final = ("gptq", "gptqmodel")
BITS: Final = (2, 3, 4, 5, 6, 7, 8)
V2: Final = ("gptq_v2", "gptq_p")
"""Formats whose zero points are stored as they are; others store them minus one."""
SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
GroupSize: TypeAlias = Annotated[int, Ge(-1)]


class GptqConfig(TolerantDocument):
    """The document exactly as stored."""

    bits: int | None = None
    w_bit: int | None = None
    """Old name of `bits`."""
    wbits: int | None = None
    """Old name of `bits`."""
    group_size: GroupSize | None = None
    """Inputs that share a scale and a zero point; -1 is all of a row."""
    q_group_size: GroupSize | None = None
    """Old name of `group_size`."""
    desc_act: bool | None = None
    """Whether inputs were ordered by activation, so that `g_idx` says their group."""
    sym: bool | None = None
    """Whether every zero point is the middle code."""
    quant_method: str | None = None
    method: str | None = None
    checkpoint_format: str | None = None
    """`gptq` stores zero points minus one, `gptq_v2` as are, `gptq_p` in planes."""
    format: str | None = None
    """GPTQModel's name of `checkpoint_format`."""
    lm_head: bool | None = None
    static_groups: bool | None = None
    true_sequential: bool | None = None
    damp_percent: float | None = Field(default=None, strict=False)
    damp_auto_increment: float | None = Field(default=None, strict=False)
    mse: float | None = Field(default=None, strict=False)
    act_group_aware: bool | None = None
    is_marlin_format: bool | None = None
    pack_dtype: str | None = None
    dynamic: dict[str, dict[str, Any]] | None = None
    """What differs by module: patterns that begin at a module's name, `-:` to skip."""
    modules_in_block_to_quantize: Any = None
    block_name_to_quantize: str | None = None
    meta: dict[str, Any] | None = None
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
        bits = self.bits or self.w_bit or self.wbits or 4
        group = next((g for g in (self.group_size, self.q_group_size) if g), 128)
        return Numbers(bits, group, sym=self.sym is not False, act=bool(self.desc_act))

    def layout(self) -> str:
        """Name the checkpoint's format, in lower case."""
        if self.is_marlin_format:
            return "marlin"
        return (self.checkpoint_format or self.format or "gptq").lower()

    def allowed(self) -> tuple[str, ...] | None:
        """List what a module has to be called to be quantized; None for no such list.

        Lists of lists, one for each step of the writer, count as one list.
        """
        value = self.modules_in_block_to_quantize
        if not isinstance(value, list):
            return None
        flat = (each if isinstance(each, list) else [each] for each in value)
        return tuple(text for each in flat for text in each if isinstance(text, str))


def _is_in(name: str, allowed: tuple[str, ...] | None) -> bool:
    """Whether a module is of those to quantize, as vLLM reads it: by part of its name.

    Without a list all are.
    """
    return not allowed or any(text in name for text in allowed)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is said of a module."""

    bits: int
    group_size: int
    sym: bool
    act: bool

    def but(self, override: Mapping[str, Any]) -> Numbers:
        """Replace what an override of `dynamic` says otherwise."""
        return Numbers(
            _of(int, override.get("bits"), self.bits),
            _of(int, override.get("group_size"), self.group_size),
            _of(bool, override.get("sym"), self.sym),
            _of(bool, override.get("desc_act"), self.act),
        )


def _of(kind: type[T], value: object, default: T) -> T:
    """Take a value of its very type, or else the default."""
    return value if type(value) is kind else default


def scheme_of(numbers: Numbers, layout: str) -> Scheme:
    """Name the scheme of a module; `layout` is the checkpoint's format."""
    return gptq(
        numbers.bits,
        max(numbers.group_size, 0),
        plus=0 if layout in V2 else 1,
        planes=layout == "gptq_p",
        symmetric=numbers.sym,
        listed=numbers.act,
    )


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the blocks that say so, and a file of GPTQ's keys that does not."""
    return tuple(keys for keys, block in blocks(raw) if _is_gptq(keys, block))


def _is_gptq(keys: Keys, block: Raw) -> bool:
    method = method_of(block)
    if method is not None:
        return method in METHODS
    return (
        not keys and "bits" in block and bool({"desc_act", "damp_percent"} & {*block})
    )


def _components(_document: GptqConfig, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: GptqConfig) -> list[Claim]:
    """List the patterns of `dynamic`: `-:` keeps a module, others say how."""
    return [
        Claim(
            ("dynamic", text),
            Pattern(text.removeprefix("-:").removeprefix("+:"), Syntax.RE_MATCH),
            "keep" if text.startswith("-:") else "quantize",
            Severity.WARNING,
            SUFFIX,
        )
        for text in document.dynamic or {}
    ]


def _defects(document: GptqConfig, place: Place) -> Iterator[Defect]:
    """Find the combinations that no reader has."""
    yield from document.unknown(place)
    numbers = document.numbers()
    if numbers.bits not in BITS:
        key = "bits" if document.bits is not None else "w_bit"
        reason = f"gptq has bits 2 to 8; found bits {numbers.bits}"
        yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, key)


def _lower(document: GptqConfig, place: Place, indexes: Indexes | None) -> Lowered:
    numbers, layout = document.numbers(), document.layout()
    overrides = {
        place.pointer("dynamic", k): v for k, v in (document.dynamic or {}).items()
    }

    allowed = document.allowed()

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if found.family is not GPTQ or not _is_in(name, allowed):
            return None
        own = numbers.but(overrides[said.pointer]) if said else numbers
        pointer = said.pointer if said else place.pointer()
        return Weight(name, scheme_of(own, layout), pointer, names=GPTQ.names)

    index = None if indexes is None else indexes.get("")
    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("gptq", place.file, (component,)), found)


def _emit(manifest: Manifest) -> GptqConfig:
    if len(manifest.components) != 1:
        raise EmitError("gptq describes one model")
    said = {str(weight.scheme): weight for _, weight in manifest.weights()}
    if len(said) != 1:
        raise EmitError(f"gptq has one scheme for all modules, not {len(said)}")
    (weight,) = said.values()
    scheme = weight.scheme
    if not isinstance(scheme, Integer) or not scheme.pack.endswith("-down"):
        raise EmitError(f"gptq has no words for {weight.name!r}: {scheme}")
    planar = scheme.pack == "i32-planes-down"
    return emitted(
        GptqConfig,
        {
            "quant_method": "gptq",
            "bits": scheme.bits,
            "group_size": scheme.group_size or -1,
            "desc_act": scheme.order == "listed",
            "sym": scheme.zero.symmetric,
            "checkpoint_format": "gptq_p"
            if planar
            else "gptq_v2"
            if not scheme.zero.plus
            else "gptq",
        },
    )


DIALECT: Final = Dialect(
    id="gptq",
    title="GPTQ, as AutoGPTQ and GPTQModel write it",
    file_name="quantize_config.json",
    document=GptqConfig,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
    synonyms={
        "w_bit": "bits",
        "wbits": "bits",
        "q_group_size": "group_size",
        "format": "checkpoint_format",
        "method": "quant_method",
    },
)
