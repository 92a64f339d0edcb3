"""`gptq`, lowered: which stored weights it declares, and as what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmanifest.dialects.base import Lowered
from qmanifest.dialects.gptq.schemes import MARLIN as MARLIN_LAYOUT
from qmanifest.dialects.gptq.schemes import scheme_of
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.dynamic import HEAD, claims
from qmanifest.dialects.lowering.first_line import first_line_decides
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.families import DENSE, GPTQ, MARLIN
from qmanifest.findings import Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.gptq import GptqConfig
    from qmanifest.evidence import Found
    from qmanifest.manifest import Component, Entry
    from qmanifest.tensors import TensorIndex


def lower_gptq(
    document: GptqConfig, place: Place, index: TensorIndex | None
) -> Lowered:
    """Lower a document against the stored tensors, without the defects of its keys."""
    numbers, layout, word = document.numbers(), document.layout(), document.word()
    overrides = {
        place.pointer("dynamic", key): own
        for key, own in (document.dynamic or {}).items()
    }
    allowed = tuple(text for _, text in _allowed(document))
    families = (GPTQ, MARLIN) if layout == MARLIN_LAYOUT else (GPTQ,)

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if found.family not in families:
            return None
        module = name.removesuffix(SUFFIX)
        if allowed and not any(text in module for text in allowed):
            return None
        own = numbers.but(overrides.get(said.pointer)) if said else numbers
        pointer = said.pointer if said else place.pointer()
        scheme = scheme_of(own, layout, word)
        return Weight(name, scheme, pointer, names=found.family.names)

    saying = Saying([*claims(document.dynamic), *_list(document)], every_linear=True)
    found, defects = lower_stored(saying, place, index, make)
    component = first_line_decides(found)
    if document.lm_head and index is not None:
        own = overrides.get(_quantized_by(component, HEAD + SUFFIX))
        scheme = scheme_of(numbers.but(own), layout, word)
        head = Weight(HEAD + SUFFIX, scheme, place.pointer(HEAD), names=GPTQ.names)
        component = _with_head(component, head, index)
    return Lowered(Manifest("gptq", place.file, (component,)), defects)


def _allowed(document: GptqConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Walk over the modules to quantize, each with its place in the list.

    Lists of lists, one for each step of the writer, count as one list.
    """
    key = "modules_in_block_to_quantize"
    for number, each in enumerate(document.modules_in_block_to_quantize or ()):
        if isinstance(each, str):
            yield (key, number), each
        else:
            for place, text in enumerate(each):
                yield (key, number, place), text


def _list(document: GptqConfig) -> Iterator[Claim]:
    """List the modules to quantize as lines, as vLLM reads them: by parts of names.

    Where a module may have a line of `dynamic` too, these would seem to decide nothing.
    """
    for parts, text in _allowed(document) if not document.dynamic else ():
        yield Claim(
            parts,
            Pattern(text, Syntax.SUBSTRING),
            "quantize",
            Severity.NOTE,
            SUFFIX,
            *read_by("gptq", "modules_in_block_to_quantize"),
        )


def _quantized_by(component: Component, name: str) -> str:
    """Point at the first line that says how a name is quantized; empty for none."""
    lines = (entry for entry in component.entries if entry.purpose == "quantize")
    return next((line.pointer for line in lines if name in line.matches), "")


def _with_head(component: Component, head: Weight, index: TensorIndex) -> Component:
    """Promise the head too, where it is stored as plain floats and nothing keeps it."""
    tensor = index.get(head.name)
    kept = any(each.name == head.name for each in component.kept)
    if kept or tensor is None or tensor.dtype not in DENSE:
        return component
    return replace(component, weights=(*component.weights, head))
