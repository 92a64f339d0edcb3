"""`hqq`: Half-Quadratic Quantization, as transformers saves it.

A weight is a table of blocks, `.W_q`, with a float scale and zero for each; its shape
and its settings lie beside it as small tensors.

Source: https://github.com/mobiusml/hqq, `core/quantize.py`; described in
docs/dialects/hqq.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

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
from qmanifest.dialects.hqq.schemes import AXES, BITS, scheme_of
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import (
    SUFFIX,
    components,
    keeps,
    modules_kept,
    only,
)
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.errors import EmitError
from qmanifest.families import HQQ
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry

PARAMS: Final = "weight_quant_params"
NESTED: Final = ("scale_quant_params", "zero_quant_params")
"""Settings of scales and zeros that are quantized in turn."""


class HqqConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    quant_config: dict[str, Any]
    """Settings of all linear layers, or of each by its tag, `self_attn.q_proj`."""
    skip_modules: Annotated[tuple[str, ...] | None, Field(strict=False)] = None
    """Tags of the modules that stay 16-bit."""

    def settings(self) -> dict[str, Mapping[str, Any]]:
        """Give the settings by tag; those under the empty tag are of all layers."""
        if isinstance(own := self.quant_config.get(PARAMS), dict):
            return {"": own}
        by_tag: dict[str, Mapping[str, Any]] = {}
        for tag, each in self.quant_config.items():
            own = each.get(PARAMS) if isinstance(each, dict) else None
            if isinstance(own, dict):
                by_tag[tag] = own
        return by_tag


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("hqq",))


def _claims(document: HqqConfig) -> list[Claim]:
    """List the tags that stay 16-bit, and those with settings of their own."""
    kept = keeps("hqq", "skip_modules", document.skip_modules, Syntax.TAG)
    return kept + [
        Claim(
            ("quant_config", tag),
            Pattern(tag, Syntax.TAG),
            "quantize",
            Severity.WARNING,
            SUFFIX,
            *read_by("hqq", "quant_config"),
        )
        for tag in document.settings()
        if tag
    ]


def _defects(document: HqqConfig, place: Place) -> Iterator[Defect]:
    """Find the settings that HQQ does not have."""
    yield from document.unknown(place)
    for tag, own in document.settings().items():
        parts = ("quant_config", *((tag,) if tag else ()), PARAMS)
        bits, axis, group = own.get("nbits"), own.get("axis", 1), own.get("group_size")
        if bits not in BITS or isinstance(bits, bool):
            reason = f"hqq has nbits {', '.join(map(str, BITS))}; found {bits!r}"
            yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, *parts, "nbits")
        if axis is not None and (type(axis) is not int or axis not in AXES):
            reason = f"axis is 0 or 1; found {axis!r}"
            yield place.defect(DefectKind.INVALID_VALUE, reason, *parts, "axis")
        if group is not None and (type(group) is not int or group <= 0 or group % 8):
            reason = f"group_size is a multiple of 8; found {group!r}"
            yield place.defect(DefectKind.INVALID_VALUE, reason, *parts, "group_size")
        outer = document.quant_config.get(tag) if tag else document.quant_config
        for key in NESTED:
            if isinstance(outer, dict) and outer.get(key):
                yield place.defect(
                    DefectKind.INVALID_VALUE,
                    f"{key} is set, and hqq cannot save that to safetensors",
                    *(*parts[:-1], key),
                    hint="set it to null and convert again",
                    severity=Severity.WARNING,
                )


def _lower(document: HqqConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    settings = document.settings()
    by_pointer = {place.pointer("quant_config", tag): s for tag, s in settings.items()}
    whole = place.pointer("quant_config")

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        own = by_pointer.get(said.pointer) if said else settings.get("")
        if index is None or found.family is not HQQ or own is None:
            return None
        scales = index.get(HQQ.names.name(name, "scales"))
        scheme = scheme_of(own, found.codes, scales)
        pointer = said.pointer if said else whole
        return Weight(name, scheme, pointer, names=HQQ.names)

    saying = Saying(_claims(document), every_linear="" in settings)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("hqq", place.file, (component,)), found)


def _emit(manifest: Manifest) -> HqqConfig:
    component = only(manifest, "hqq")
    schemes = {weight.scheme for weight in component.weights}
    if len(schemes) != 1:
        raise EmitError(f"hqq has one scheme for all modules here, not {len(schemes)}")
    (scheme,) = schemes
    if not isinstance(scheme, Integer) or not scheme.spread.form.startswith("flat-"):
        raise EmitError(f"hqq has no words for {scheme}")
    params = {
        "nbits": scheme.bits,
        "group_size": scheme.group_size or None,
        "axis": 1 if scheme.spread.form == "flat-column" else 0,
    }
    document = {
        "quant_method": "hqq",
        "quant_config": {PARAMS: params},
        "skip_modules": modules_kept(component),
    }
    return emitted(HqqConfig, document)


DIALECT: Final = Dialect(
    id="hqq",
    title="HQQ, as transformers saves it",
    file_name="config.json",
    document=HqqConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
)
