"""Lowering ModelOpt's configs: one algorithm for all layers, or one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.base import Lowered
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.promised import module_pattern, with_promised
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.modelopt.groups import (
    group_defects,
    group_size_of,
    kept_and_quantized,
)
from qmanifest.dialects.modelopt.schemes import (
    ALGORITHMS,
    Scales,
    scales_of,
    scheme_of,
    stacked,
)
from qmanifest.families import EXPERT_SCALED, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Indexes, Place
    from qmanifest.dialects.modelopt import ModeloptConfig
    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorIndex

MIXED: Final = "MIXED_PRECISION"
LOW_RANK: Final = "NVFP4_SVD"
"""The algorithm that leaves a part of the weight beside its codes."""
NVFP4_GROUP: Final = 16


def _claims(document: ModeloptConfig, index: TensorIndex | None) -> list[Claim]:
    """List what stays 16-bit, and what is quantized in a way of its own."""
    kept = [
        Claim(
            (key, number),
            Pattern(text, Syntax.FNMATCH),
            "keep",
            Severity.NOTE,
            SUFFIX,
            *read_by("modelopt", key),
        )
        for key, texts in document.left_alone().items()
        for number, text in enumerate(texts or ())
    ]
    return kept + [
        Claim(
            ("quantized_layers", module),
            module_pattern(module, index),
            "quantize",
            Severity.WARNING,
            SUFFIX,
        )
        for module in document.quantized_layers or ()
    ]


def _defects(document: ModeloptConfig, place: Place) -> Iterator[Defect]:
    """Find what does not exist, and what is said in two ways."""
    yield from document.unknown(place)
    yield from group_defects(document, place)
    yield from kept_and_quantized(document, place, document.left_alone())
    yield from _said(document.algorithm(), document.group_size, place)
    layers = document.quantized_layers or {}
    for module, own in layers.items():
        parts = ("quantized_layers", module)
        yield from _said(
            str(own.get("quant_algo")), own.get("group_size"), place, *parts
        )
    if document.algorithm() == MIXED and not layers:
        yield place.defect(
            DefectKind.MISSING_KEY,
            f"quant_algo is {MIXED}, and no quantized_layers say what is mixed",
            "quant_algo",
        )
    algorithms = {document.algorithm()}
    algorithms |= {str(own.get("quant_algo")) for own in layers.values()}
    if LOW_RANK in algorithms:
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            f"{LOW_RANK} adds the product of svdquant_lora_b and svdquant_lora_a to a "
            "weight; it is not decoded here, the codes are",
            severity=Severity.NOTE,
        )


def _said(
    algorithm: str, group: object, place: Place, *parts: str | int
) -> Iterator[Defect]:
    """Find an algorithm or a group size that does not exist."""
    name = algorithm.upper()
    if name and name not in ALGORITHMS and (name != MIXED or parts):
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"quant_algo {algorithm!r} is none that is known",
            *(*parts, "quant_algo"),
            expected=", ".join(sorted({*ALGORITHMS, MIXED})),
            actual=algorithm,
        )
    elif "NVFP4" in name and group is not None and group != NVFP4_GROUP:
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            f"{name} has group_size {NVFP4_GROUP} only; found {group!r}",
            *(*parts, "group_size"),
        )


def lower(document: ModeloptConfig, place: Place, indexes: Indexes | None) -> Lowered:
    """Lower a document: every weight that is stored, and its lines."""
    index = None if indexes is None else indexes.get("")
    layers = {
        place.pointer("quantized_layers", module): each
        for module, each in (document.quantized_layers or {}).items()
    }

    def scheme(said: Entry | None, scales: Scales) -> Scheme | None:
        own = layers[said.pointer] if said else {}
        algorithm = str(own.get("quant_algo") or document.algorithm()).upper()
        group = own.get("group_size") or group_size_of(document)
        return scheme_of(algorithm, group, scales)

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        family = found.family
        if index is None or family not in {SCALED, EXPERT_SCALED}:
            return None
        made: Scheme | None
        if family is SCALED:
            made = scheme(said, scales_of(name, index))
        else:
            made = stacked(found.codes)
        pointer = said.pointer if said else place.pointer()
        return None if made is None else Weight(name, made, pointer, names=family.names)

    def promise(name: str, said: Entry) -> Weight | None:
        made = scheme(said, Scales())
        if made is None:
            return None
        return Weight(name, made, said.pointer, names=SCALED.names)

    whole = document.algorithm() not in {"", MIXED}
    saying = Saying(_claims(document, index), every_linear=whole)
    component, defects = lower_stored(saying, place, index, make)
    component = with_promised(component, index, promise)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("modelopt", place.file, (component,)), found)
