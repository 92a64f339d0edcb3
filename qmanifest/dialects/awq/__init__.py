"""`awq`: what AutoAWQ writes into `config.json` beside AWQ's tensors.

What is quantized shows by `.qweight`; `version` says in which of three layouts, and
`modules_to_not_convert` lists parts of the names of what is not.

Source: https://github.com/casper-hansen/AutoAWQ, `models/_config.py`; FORMATS 3 is
retold in docs/dialects/awq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import Field

from qmanifest.dialects.awq.lower import lower_awq
from qmanifest.dialects.awq.schemes import BITS, VERSIONS
from qmanifest.dialects.base import (
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.dynamic import GroupSize, Override
from qmanifest.dialects.lowering.one_model import components, modules_kept, only
from qmanifest.errors import EmitError
from qmanifest.schemes.qweight import undecoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.manifest import Manifest
    from qmanifest.schemes import Scheme


class AwqConfig(TolerantDocument):
    """The document exactly as stored."""

    vocabulary: ClassVar[tuple[str, ...]] = tuple(Override.model_fields)

    quant_method: str | None = None
    """`awq`; absent in `quant_config.json`."""
    method: str | None = None
    """GPTQModel's name of `quant_method`."""
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
    sym: bool | None = None
    """GPTQModel's name of what `zero_point` denies."""
    version: str | None = None
    """`gemm` (the default), `gemv`, `gemv_fast`, `llm-awq` or `marlin`, in either case;
    `exllama`, `exllamav2` and `ipex` read `gemm`."""
    format: str | None = None
    """Name of `version` in transformers 5 and GPTQModel."""
    checkpoint_format: str | None = None
    """Another name of `version` in GPTQModel."""
    backend: str | None = None
    """`llm-awq` means that layout; others say nothing of what is stored."""
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Parts of the names of modules that stay 16-bit."""
    dynamic: dict[str, Override | None] | None = None
    """GPTQModel: patterns that begin at a module's name, `-:` to skip."""
    rotation: Any = None
    activation: Any = None
    adapter: Any = None
    lm_head: bool | None = None
    desc_act: bool | None = None
    pack_dtype: str | None = None
    do_fuse: bool | None = None
    fuse_max_seq_len: int | None = None
    modules_to_fuse: dict[str, Any] | None = None
    exllama_config: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    """Who wrote it, and how; nothing of how it is stored."""

    def layout(self) -> str:
        """Name the layout, in lower case."""
        if (self.backend or "").lower() == "llm-awq":
            return "llm-awq"
        said = (self.version, self.format, self.checkpoint_format)
        return next((each.lower() for each in said if each), "gemm")

    def bits_or_default(self) -> int:
        """Give the bits of modules that no pattern names."""
        return next((b for b in (self.bits, self.w_bit) if b is not None), BITS)

    def scheme(self, own: Override | None = None) -> Scheme:
        """Name the scheme of a module, with what an override says otherwise."""
        bits, group = self.bits_or_default(), self.group_size or self.q_group_size
        if own is not None:
            bits = bits if own.bits is None else own.bits
            group = own.group_size or group
        size = max(128 if group is None else group, 0)
        make = VERSIONS.get(self.layout())
        if make is None or bits != BITS:
            return undecoded(self.layout(), bits, size)
        return make(bits, size)


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the blocks that say so, and a file of AWQ's keys that does not."""
    return tuple(keys for keys, block in blocks(raw) if _is_awq(keys, block))


def _is_awq(keys: Keys, block: Raw) -> bool:
    method = method_of(block) or block.get("method")
    if isinstance(method, str):
        return method.lower() == "awq"
    return not keys and "zero_point" in block and bool({"w_bit", "bits"} & {*block})


def _lower(document: AwqConfig, place: Place, indexes: Indexes | None) -> Lowered:
    return lower_awq(document, place, None if indexes is None else indexes.get(""))


def _emit(manifest: Manifest) -> AwqConfig:
    component = only(manifest, "awq")
    schemes = {weight.scheme for weight in component.weights}
    if len(schemes) != 1:
        raise EmitError(f"awq has one scheme for all modules, not {len(schemes)}")
    (scheme,) = schemes
    same = (v for v, make in VERSIONS.items() if _is(make, scheme))
    version = next(same, None)
    if version is None:
        raise EmitError(f"awq has no words for {scheme}")
    kept = modules_kept(component)
    for weight in component.weights:
        for text in kept:
            if text in weight.name:
                raise EmitError(
                    f"{text!r}, which is kept, is a part of {weight.name!r}, which is "
                    "not, and awq keeps by parts of names"
                )
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


def _is(make: Callable[[int, int], Scheme], scheme: Scheme) -> bool:
    """Whether a scheme is one that `make` makes."""
    return make(scheme.bits, scheme.group_size) == scheme


DIALECT: Final = Dialect(
    id="awq",
    title="AWQ, as AutoAWQ writes it",
    file_name="config.json",
    document=AwqConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    decodes="most",
    blocks=("quantization_config",),
    synonyms={
        "w_bit": "bits",
        "q_group_size": "group_size",
        "format": "version",
        "checkpoint_format": "version",
        "method": "quant_method",
    },
)
