"""`awq`: what AutoAWQ writes into `config.json` beside AWQ's tensors.

What is quantized shows by `.qweight`; `version` says in which of three layouts, and
`modules_to_not_convert` lists parts of the names of what is not.

Source: https://github.com/casper-hansen/AutoAWQ, `models/_config.py`; FORMATS 3 is
retold in docs/dialects/awq.md.
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
from qmanifest.families import GPTQ
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.schemes.qweight import awq_gemm, awq_gemv, awq_gemv_fast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
VERSIONS: Final = {
    "gemm": awq_gemm,
    "gemv": awq_gemv,
    "gemv_fast": awq_gemv_fast,
    "llm-awq": awq_gemv_fast,
}
"""The layouts, and the scheme of each by bits and group size."""
GroupSize: TypeAlias = Annotated[int, Ge(-1)]


class AwqConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str | None = None
    bits: int | None = None
    """Bits of a code; AutoAWQ has 4 only, which is the default."""
    w_bit: int | None = None
    """Old name of `bits`."""
    group_size: GroupSize | None = None
    """Inputs that share a scale and a zero point, by default 128; -1 is a whole row."""
    q_group_size: GroupSize | None = None
    """Old name of `group_size`."""
    zero_point: bool | None = None
    """Whether zero points differ from the middle code, by default true."""
    version: str | None = None
    """`gemm` (the default), `gemv`, `gemv_fast` or `llm-awq`, in either case."""
    format: str | None = None
    """Name of `version` in transformers 5 and GPTQModel."""
    checkpoint_format: str | None = None
    backend: str | None = None
    """`llm-awq` means that layout; others say nothing of what is stored."""
    sym: bool | None = None
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Parts of the names of modules that stay 16-bit."""
    lm_head: bool | None = None
    do_fuse: bool | None = None
    fuse_max_seq_len: int | None = None
    modules_to_fuse: dict[str, Any] | None = None
    exllama_config: dict[str, Any] | None = None
    desc_act: bool | None = None
    pack_dtype: str | None = None
    meta: dict[str, Any] | None = None

    def layout(self) -> str:
        """Name the layout, in lower case."""
        if (self.backend or "").lower() == "llm-awq":
            return "llm-awq"
        said = (self.version, self.format, self.checkpoint_format)
        return next((each.lower() for each in said if each), "gemm")

    def scheme(self) -> Scheme | None:
        """Name the scheme of every module; None for a layout that is not known."""
        make = VERSIONS.get(self.layout())
        group = next((g for g in (self.group_size, self.q_group_size) if g), 128)
        bits = self.bits or self.w_bit or 4
        return None if make is None else make(bits, max(group, 0))


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the blocks that say so, and a file of AWQ's keys that does not."""
    return tuple(keys for keys, block in blocks(raw) if _is_awq(keys, block))


def _is_awq(keys: Keys, block: Raw) -> bool:
    method = method_of(block)
    if method is not None:
        return method == "awq"
    return not keys and "zero_point" in block and bool({"w_bit", "bits"} & {*block})


def _components(_document: AwqConfig, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: AwqConfig) -> list[Claim]:
    """List the modules that stay 16-bit, as AutoAWQ and vLLM read them."""
    return [
        Claim(
            ("modules_to_not_convert", number),
            Pattern(text, Syntax.SUBSTRING),
            "keep",
            Severity.NOTE,
            SUFFIX,
            *read_by("awq", "modules_to_not_convert"),
        )
        for number, text in enumerate(document.modules_to_not_convert or ())
    ]


def _defects(document: AwqConfig, place: Place) -> Iterator[Defect]:
    """Find the combinations that no reader has."""
    yield from document.unknown(place)
    bits, layout = document.bits or document.w_bit or 4, document.layout()
    if bits != 4:  # noqa: PLR2004 - as the message says
        key = "w_bit" if document.bits is None else "bits"
        reason = f"awq has bits 4 only; found bits {bits}"
        yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, key)
    if document.scheme() is None:
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"version {layout!r} is none whose layout is known here: its values are "
            "not decoded",
            expected=", ".join(VERSIONS),
            actual=layout,
            severity=Severity.NOTE if layout in {"marlin", "exllama"} else None,
        )


def _lower(document: AwqConfig, place: Place, indexes: Indexes | None) -> Lowered:
    scheme = document.scheme()

    def make(name: str, found: Found, _said: Entry | None) -> Weight | None:
        if scheme is None or found.family is not GPTQ:
            return None
        return Weight(name, scheme, place.pointer(), names=GPTQ.names)

    index = None if indexes is None else indexes.get("")
    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("awq", place.file, (component,)), found)


def _emit(manifest: Manifest) -> AwqConfig:
    if len(manifest.components) != 1:
        raise EmitError("awq describes one model")
    (component,) = manifest.components
    schemes = {weight.scheme for weight in component.weights}
    for version, make in VERSIONS.items():
        for scheme in schemes:
            if len(schemes) == 1 and scheme == make(scheme.bits, scheme.group_size):
                kept = [each.name.removesuffix(SUFFIX) for each in component.kept]
                return emitted(
                    AwqConfig,
                    {
                        "quant_method": "awq",
                        "bits": scheme.bits,
                        "group_size": scheme.group_size or -1,
                        "zero_point": True,
                        "version": version,
                        "modules_to_not_convert": kept or None,
                    },
                )
    raise EmitError("awq has one scheme of AWQ's for all modules")


DIALECT: Final = Dialect(
    id="awq",
    title="AWQ, as AutoAWQ writes it",
    file_name="config.json",
    document=AwqConfig,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
    synonyms={"w_bit": "bits", "q_group_size": "group_size"},
)
