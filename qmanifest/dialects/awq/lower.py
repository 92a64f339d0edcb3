"""`awq`, lowered and judged: which stored weights it declares, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.awq.schemes import BITS, VERSIONS
from qmanifest.dialects.base import Lowered
from qmanifest.dialects.documents.twice import contradictions
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.dynamic import KEEP, claims
from qmanifest.dialects.lowering.first_line import first_line_decides
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.families import GPTQ
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.names import numberless
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.awq import AwqConfig
    from qmanifest.dialects.base import Place
    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.tensors import TensorIndex

TWICE: Final = (
    ("bits", "w_bit"),
    ("group_size", "q_group_size"),
    ("quant_method", "method"),
    ("version", "format", "checkpoint_format"),
)
"""Keys that say the same."""


def _claims(document: AwqConfig) -> list[Claim]:
    """List the modules that stay 16-bit, and what differs by module.

    A text with a number in it means certain layers, so that it is news if they are not
    there; others are lists for several models.
    """
    return [
        *(
            Claim(
                ("modules_to_not_convert", number),
                Pattern(text, Syntax.SUBSTRING),
                "keep",
                Severity.WARNING if numberless(text) != text else Severity.NOTE,
                SUFFIX,
                *read_by("awq", "modules_to_not_convert"),
            )
            for number, text in enumerate(document.modules_to_not_convert or ())
        ),
        *claims(document.dynamic),
    ]


def _defects(document: AwqConfig, place: Place) -> Iterator[Defect]:
    """Find the combinations that no reader has."""
    yield from document.unknown(place)
    yield from contradictions(document, place, TWICE)
    layout = document.layout()
    key = "bits" if document.w_bit is None else "w_bit"
    said: list[tuple[tuple[str, ...], int | None]] = [
        ((key,), document.bits_or_default())
    ]
    for pattern, own in (document.dynamic or {}).items():
        if own is not None and not pattern.startswith(KEEP):
            said.append((("dynamic", pattern, "bits"), own.bits))
    for parts, bits in said:
        if bits not in {None, BITS}:
            reason = f"awq has bits {BITS} only; found bits {bits}"
            yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, *parts)
    if layout not in VERSIONS:
        key = next(key for key in TWICE[-1] if getattr(document, key))
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"{key} {layout!r} is none that is known: readers cannot tell what is "
            "stored",
            key,
            expected=", ".join(VERSIONS),
            actual=layout,
        )


def lower_awq(document: AwqConfig, place: Place, index: TensorIndex | None) -> Lowered:
    """Lower a document against the stored tensors."""
    overrides = {
        place.pointer("dynamic", key): own
        for key, own in (document.dynamic or {}).items()
    }

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if found.family is not GPTQ:
            return None
        own = overrides.get(said.pointer) if said else None
        pointer = said.pointer if said else place.pointer()
        return Weight(name, document.scheme(own), pointer, names=GPTQ.names)

    saying = Saying(_claims(document), every_linear=True)
    lowered, defects = lower_stored(saying, place, index, make)
    component = first_line_decides(lowered)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("awq", place.file, (component,)), found)
