"""`auto-round`, lowered and judged: which stored weights it declares, and as what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.auto_round.schemes import (
    BITS,
    FAMILIES,
    FLOATS,
    is_known,
    scheme_of,
)
from qmanifest.dialects.base import Lowered
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.first_line import first_line_decides
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.auto_round import AutoRoundConfig
    from qmanifest.dialects.base import Place
    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.tensors import TensorIndex

DENSE_BITS: Final = 16
"""Bits from which on a layer stays as it is."""
SPECIAL: Final = frozenset("\\*+?()|[]{}^$")
"""Characters by which a text is an expression, whatever is stored."""


def lower_auto_round(
    document: AutoRoundConfig, place: Place, index: TensorIndex | None
) -> Lowered:
    """Lower a document against the stored tensors."""
    layers = {
        place.pointer("extra_config", name): document.numbers(name)
        for name in document.extra_config or {}
    }
    begins, packing = document.blocks(), document.packing()
    usual = document.numbers()

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        outside = said is None and begins and not name.startswith(begins)
        if found.family not in FAMILIES or outside or index is None:
            return None
        own = layers[said.pointer] if said else usual
        scheme = scheme_of(packing, own, name, found, index)
        if scheme is None:
            return None
        pointer = said.pointer if said else place.pointer()
        return Weight(name, scheme, pointer, names=found.family.names)

    saying = Saying(_claims(document, index), every_linear=True)
    lowered, defects = lower_stored(saying, place, index, make)
    component = first_line_decides(lowered)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("auto-round", place.file, (component,)), found)


def _claims(document: AutoRoundConfig, index: TensorIndex | None) -> list[Claim]:
    """List the layers that differ: whole names before regular expressions."""
    named: list[Claim] = []
    patterns: list[Claim] = []
    for name, own in (document.extra_config or {}).items():
        exact = SPECIAL.isdisjoint(name) if index is None else _is_stored(name, index)
        keep = (own.bits or 0) >= DENSE_BITS
        reader, others = read_by("auto-round", "extra_config")
        if index is None and not exact:
            reader = ""  # to which an expression is a name too, if one is called so
        claim = Claim(
            ("extra_config", name),
            Pattern(name, Syntax.EXACT if exact else Syntax.RE_SEARCH),
            "keep" if keep else "quantize",
            Severity.NOTE if keep else Severity.WARNING,
            SUFFIX,
            reader,
            others,
        )
        (named if exact else patterns).append(claim)
    return [*named, *patterns]


def _is_stored(module: str, index: TensorIndex) -> bool:
    """Whether a module of this very name is stored, quantized or not."""
    ends = (SUFFIX, *(family.codes for family in FAMILIES))
    return any(module + end in index for end in ends)


def _defects(document: AutoRoundConfig, place: Place) -> Iterator[Defect]:
    """Find the combinations that no reader has."""
    yield from document.unknown(place)
    said: list[tuple[tuple[str, ...], int, str]] = [
        (("bits",), document.bits, document.data_type)
    ]
    for name, own in (document.extra_config or {}).items():
        if own.bits is not None and own.bits < DENSE_BITS:
            data_type = own.data_type or document.data_type
            said.append((("extra_config", name, "bits"), own.bits, data_type))
    for parts, bits, data_type in said:
        if bits not in BITS and not data_type.startswith(FLOATS):
            reason = f"auto-round has bits 2 to 8; found bits {bits}"
            yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, *parts)
    packing = document.packing()
    if not is_known(packing):
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"packing_format {packing!r} is none that is known: readers cannot tell "
            "what is stored",
            "packing_format",
            expected="auto_round:auto_gptq, auto_round:auto_awq, auto_round, ...",
            actual=packing,
        )
