"""Lowering Gemma's documents: the pattern that is in force for a module, its scheme."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.base import Lowered
from qmanifest.dialects.gemma.schemes import WIDTHS, gemma
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.lowering.unused import unused_entry
from qmanifest.families import GEMMA, GEMMA_TABLE, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.patterns.regexes import compile_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.gemma import GemmaConfig
    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.tensors import TensorIndex

KEEPS: Final = "modules_to_not_convert"
OWN: Final = "module_quant_configs"


def _claims(document: GemmaConfig, index: TensorIndex | None) -> list[Claim]:
    """List what stays 16-bit, and the patterns of what has a width of its own."""
    kept = [
        Claim(
            (KEEPS, number),
            Pattern(text, Syntax.BOUNDARY),
            "keep",
            unused_entry(text, index),
            SUFFIX,
            *read_by("gemma", KEEPS),
        )
        for number, text in enumerate(document.modules_to_not_convert or ())
    ]
    return kept + [
        Claim(
            (OWN, text),
            Pattern(text, Syntax.RE_SEARCH),
            "quantize",
            Severity.WARNING,
            SUFFIX,
            *read_by("gemma", OWN),
        )
        for text in document.module_quant_configs or ()
    ]


def _defects(document: GemmaConfig, place: Place) -> Iterator[Defect]:
    """Find the widths that transformers does not have."""
    yield from document.unknown(place)
    said: list[tuple[tuple[str, ...], int | None]] = [(("num_bits",), document.bits())]
    for pattern, own in (document.module_quant_configs or {}).items():
        said.append(((OWN, pattern, "num_bits"), own.num_bits))
    for parts, bits in said:
        if bits is not None and bits not in WIDTHS:
            reason = f"gemma has num_bits {', '.join(map(str, WIDTHS))}; found {bits}"
            yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, *parts)


def lower_gemma(
    document: GemmaConfig, place: Place, index: TensorIndex | None
) -> Lowered:
    """Lower a document against the stored tensors."""

    def weight(name: str, said: Entry | None, *, table: bool) -> Weight:
        scheme = gemma(document.bits(said.pattern.text if said else None), table=table)
        pointer = said.pointer if said else place.pointer()
        return Weight(
            name, scheme, pointer, names=(GEMMA_TABLE if table else GEMMA).names
        )

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        table = found.family is GEMMA_TABLE
        if table and not document.quantize_embeddings:
            return None
        layer = found.family in {GEMMA, SCALED} and found.codes.dtype in {"U8", "I8"}
        return weight(name, said, table=table) if table or layer else None

    saying = Saying(_claims(document, index), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    several = _several(component.entries)
    weights = tuple(
        weight(
            each.name,
            _in_force(each.name, several[each.name]),
            table=each.names == GEMMA_TABLE.names,
        )
        if each.name in several
        else each
        for each in component.weights
    )
    component = replace(component, weights=weights)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("gemma", place.file, (component,)), found)


def _several(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Find the names that several patterns match, with those in their order."""
    matching: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.purpose == "quantize":
            for name in entry.matches:
                matching[name].append(entry)
    return {name: found for name, found in matching.items() if len(found) > 1}


def _in_force(name: str, entries: Sequence[Entry]) -> Entry:
    """Pick the pattern that transformers takes: it searches for all of them at once.

    So the one counts whose match begins first, and of those the first.
    """
    text = name.removesuffix(SUFFIX).encode()
    return min(entries, key=lambda entry: _begin(entry.pattern.text, text))


def _begin(pattern: str, text: bytes) -> int:
    """Tell where a pattern's first match begins, which is known to be somewhere."""
    found: Any = _program(pattern).search(text)
    return int(found.start())


_program = lru_cache(maxsize=256)(compile_program)
