"""`auto-round`: what Intel's AutoRound writes beside GPTQ's or AWQ's tensors.

`packing_format` says which of the two; `extra_config` says what differs by layer.

Source: https://github.com/intel/auto-round, `export/`; FORMATS 12 is retold in
docs/dialects/auto-round.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

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
from qmanifest.families import GPTQ, PACKED, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes.floats import fp8_whole, packed_floats
from qmanifest.schemes.qweight import awq_gemm, gptq

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorIndex

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
METHODS: Final = ("auto-round", "auto_round", "intel/auto-round")
DENSE_BITS: Final = 16
"""Bits of a layer that stays as it is."""
AS_STORED: Final = ("auto_round", "auto_round:gptqmodel", "auto_round:auto_gptqmodel")
"""Formats whose zero points are stored as they are; GPTQ's others have minus one."""
GroupSize: TypeAlias = Annotated[int, Ge(-1)]


class AutoRoundConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    bits: int
    """Bits of a code, 2 to 8."""
    group_size: GroupSize = 128
    """Inputs that share a scale and a zero point; -1 is all of a row."""
    sym: bool = True
    """Whether every zero point is the middle code."""
    data_type: str = "int"
    """`int`, or `mx_fp`, `nv_fp`, `fp8`: small floats."""
    act_bits: int | None = None
    act_group_size: int | None = None
    act_sym: bool | None = None
    act_data_type: str | None = None
    act_dynamic: bool | None = None
    super_bits: int | None = None
    super_group_size: int | None = None
    packing_format: str = "auto_round:auto_gptq"
    """Whose tensors these are."""
    block_name_to_quantize: (
        str | Annotated[tuple[str, ...], Field(strict=False)] | None
    ) = None
    """What the names of quantized modules begin with; a list, or one with commas."""
    to_quant_block_names: Any = None
    extra_config: dict[str, dict[str, Any]] | None = None
    """What differs by layer: whole names first, then regular expressions anywhere."""
    autoround_version: str | None = None
    rotation_config: Any = None
    iters: int | None = None
    nsamples: int | None = None
    batch_size: int | None = None
    seqlen: int | None = None
    lr: float | None = Field(default=None, strict=False)
    minmax_lr: float | None = Field(default=None, strict=False)
    enable_quanted_input: bool | None = None
    enable_minmax_tuning: bool | None = None
    low_gpu_mem_usage: bool | None = None
    gradient_accumulate_steps: int | None = None
    scale_dtype: str | None = None
    dataset: Any = None
    amp: bool | None = None
    static_kv_dtype: str | None = None
    static_attention_dtype: str | None = None
    transform_config: Any = None
    backend: str | None = None

    def blocks(self) -> tuple[str, ...]:
        """List what the names of quantized modules begin with; none means any."""
        named = self.block_name_to_quantize or ()
        return tuple(named.split(",")) if isinstance(named, str) else named


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return tuple(keys for keys, block in blocks(raw) if method_of(block) in METHODS)


def _components(_document: AutoRoundConfig, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: AutoRoundConfig, index: TensorIndex | None) -> list[Claim]:
    """List the layers that differ: whole names before regular expressions."""
    lines = []
    for name, own in (document.extra_config or {}).items():
        exact = index is None or _is_stored(name, index)
        keep = own.get("bits") == DENSE_BITS
        claim = Claim(
            ("extra_config", name),
            Pattern(name, Syntax.EXACT if exact else Syntax.RE_SEARCH),
            "keep" if keep else "quantize",
            Severity.NOTE if keep else Severity.WARNING,
            SUFFIX,
        )
        lines.append((not exact, claim))
    return [claim for _, claim in sorted(lines, key=lambda line: line[0])]


def _is_stored(module: str, index: TensorIndex) -> bool:
    """Whether a module of this very name is stored, quantized or not."""
    return any(module + end in index for end in (SUFFIX, GPTQ.codes, PACKED.codes))


def _defects(document: AutoRoundConfig, place: Place) -> Iterator[Defect]:
    """Find the combinations that no reader has."""
    yield from document.unknown(place)
    if document.data_type == "int" and document.bits not in range(2, 9):
        reason = f"auto-round has bits 2 to 8; found bits {document.bits}"
        yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, "bits")


def _scheme(
    document: AutoRoundConfig, own: Mapping[str, Any], found: Found
) -> Scheme | None:
    """Name a layer's scheme; None where its tensors are not what the format has."""
    bits, group = own.get("bits", document.bits), own.get("group_size")
    group = group if isinstance(group, int) else document.group_size
    symmetric = own.get("sym", document.sym) is not False
    packing = document.packing_format.lower()
    if found.family is PACKED:
        return packed_floats(document.data_type, bits)
    if found.family is SCALED:
        return fp8_whole("one")
    if "awq" in packing:
        return awq_gemm(bits, max(group, 0))
    plus = 0 if packing in AS_STORED else 1
    return gptq(bits, max(group, 0), plus=plus, symmetric=symmetric)


def _lower(document: AutoRoundConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    layers = {
        place.pointer("extra_config", name): own
        for name, own in (document.extra_config or {}).items()
    }
    begins = document.blocks()

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if found.family not in {GPTQ, PACKED, SCALED}:
            return None
        if begins and said is None and not name.startswith(begins):
            return None
        scheme = _scheme(document, layers[said.pointer] if said else {}, found)
        if scheme is None:
            return None
        pointer = said.pointer if said else place.pointer()
        return Weight(name, scheme, pointer, names=found.family.names)

    saying = Saying(_claims(document, index), every_linear=not begins)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("auto-round", place.file, (component,)), found)


def _emit(manifest: Manifest) -> AutoRoundConfig:
    if len(manifest.components) != 1:
        raise EmitError("auto-round describes one model")
    (component,) = manifest.components
    schemes = {weight.scheme for weight in component.weights}
    if len(schemes) != 1:
        raise EmitError(f"auto-round has one scheme here, not {len(schemes)}")
    (scheme,) = schemes
    group = scheme.group_size
    made: tuple[tuple[str, Scheme, bool], ...] = (
        ("auto_round:auto_awq", awq_gemm(scheme.bits, group), False),
        *(
            (packing, gptq(scheme.bits, group, plus=plus, symmetric=sym), sym)
            for packing, plus in (("auto_round:auto_gptq", 1), ("auto_round", 0))
            for sym in (True, False)
        ),
    )
    for packing, each, symmetric in made:
        if scheme == each:
            document = {
                "quant_method": "auto-round",
                "bits": scheme.bits,
                "group_size": group or -1,
                "sym": symmetric,
                "packing_format": packing,
            }
            kept = [kept.name.removesuffix(SUFFIX) for kept in component.kept]
            if kept:
                document["extra_config"] = {name: {"bits": 16} for name in kept}
            return emitted(AutoRoundConfig, document)
    raise EmitError(f"auto-round has no words for {scheme}")


DIALECT: Final = Dialect(
    id="auto-round",
    title="AutoRound, in the tensors of GPTQ or AWQ",
    file_name="config.json",
    document=AutoRoundConfig,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
