"""Lowering fine-grained FP8: what stays 16-bit, and what ModelOpt quantized again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.base import Lowered
from qmanifest.dialects.fp8.schemes import FAMILIES, Stored, spelling, with_bare_stacks
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.promised import module_pattern, with_promised
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.lowering.unused import unused_entry
from qmanifest.evidence import Evidence
from qmanifest.families import BLOCK_FP8, F8, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.schemes.floats import WIDE, fp8_blocks, nvfp4

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.dialects.base import Indexes, Place
    from qmanifest.dialects.fp8 import Fp8Config
    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.tensors import TensorIndex

AGAIN: Final = "quantized_layers"
"""Where ModelOpt says what it quantized again of a model in FP8."""
VALUES: Final = {
    "activation_scheme": ("dynamic", "static"),
    "scale_fmt": ("float", "ue8m0"),
    "expert_dtype": ("fp8", "fp4"),
}
"""What readers know of keys that have few values."""


def _claims(document: Fp8Config, index: TensorIndex | None) -> list[Claim]:
    """List what stays 16-bit, what else is FP8, and what ModelOpt quantized again."""
    lists = (
        ("modules_to_not_convert", document.modules_to_not_convert, Syntax.BOUNDARY),
        ("ignored_layers", document.ignored_layers, Syntax.EXACT),
        ("modules_to_convert", document.modules_to_convert, Syntax.SUFFIX),
    )
    claims = [
        Claim(
            *((key, number), Pattern(text, syntax)),
            "quantize" if key == "modules_to_convert" else "keep",
            unused_entry(text, index),
            SUFFIX,
            *read_by("fp8", key),
        )
        for key, texts, syntax in lists
        for number, text in enumerate(texts or ())
    ]
    claims += [
        Claim(
            (AGAIN, module),
            module_pattern(module, index),
            "quantize",
            Severity.WARNING,
            SUFFIX,
        )
        for module in document.quantized_layers or ()
    ]
    return claims


def _defects(document: Fp8Config, place: Place) -> Iterator[Defect]:
    """Find the values that no reader has."""
    yield from document.unknown(place)
    for key, known in VALUES.items():
        said = getattr(document, key)
        if said is not None and said.lower() not in known:
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"{key} is {said!r}",
                key,
                expected=" or ".join(known),
                actual=said,
            )
    for module, said in (document.quantized_layers or {}).items():
        if not _is_nvfp4(said):
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"{module!r} has quant_algo {said.get('quant_algo')!r}, and only NVFP4 "
                "is known beside FP8",
                *(AGAIN, module),
                severity=Severity.WARNING,
            )


def _is_nvfp4(said: Mapping[str, Any]) -> bool:
    return "NVFP4" in str(said.get("quant_algo")).upper()


def lower(document: Fp8Config, place: Place, indexes: Indexes | None) -> Lowered:
    """Lower a document: every FP8 weight that is stored, and its lines."""
    index = None if indexes is None else indexes.get("")
    again = {
        place.pointer(AGAIN, module)
        for module, said in (document.quantized_layers or {}).items()
        if _is_nvfp4(said)
    }

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        family, names = found.family, found.family.names
        is_again = said is not None and said.pointer in again
        plain = found.codes.dtype in F8 or family is not SCALED
        if stored is None or family not in FAMILIES or not (plain or is_again):
            return None
        if said is not None and is_again:
            return Weight(name, nvfp4("u8-nibbles"), said.pointer, names=SCALED.names)
        if family is SCALED and names.name(name, "scales") not in stored.index:
            names = usual  # what it lacks is this dialect's scale
        scheme = stored.scheme(names, found.codes)
        pointer = place.pointer() if said is None else said.pointer
        return Weight(name, scheme, pointer, names=names)

    def promise(name: str, said: Entry) -> Weight:
        if said.pointer in again:
            return Weight(name, nvfp4("u8-nibbles"), said.pointer, names=SCALED.names)
        blocks = fp8_blocks(*(document.block or (0, 0)), WIDE, "float")
        return Weight(name, blocks, said.pointer, names=usual)

    stored = None if index is None else _stored(document, index)
    usual = BLOCK_FP8.names if index is None else spelling(index.derived(Evidence))
    saying = Saying(_claims(document, index), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    component = with_promised(component, index, promise)
    if stored is not None:
        component = with_bare_stacks(component, stored, place.pointer())
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("fp8", place.file, (component,)), found)


def _stored(document: Fp8Config, index: TensorIndex) -> Stored:
    """Gather what the document says of all weights."""
    return Stored(
        index,
        document.block,
        "weight_block_size" in document.model_fields_set,
        (document.scale_fmt or "").lower() == "ue8m0",
        (document.activation_scheme or "").lower() == "static",
        (document.expert_dtype or "").lower() != "fp8",
    )
