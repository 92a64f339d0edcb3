"""`tensor-map`: one entry per quantized tensor, and a list of those kept 16-bit.

Example document: examples/tensor_map/quant_config.json
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import repeat
from typing import Annotated, ClassVar

from annotated_types import Ge, Len
from pydantic import ConfigDict, FailFast, Field
from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from qmanifest.dialects.base import (
    ComponentNames,
    Dialect,
    Document,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
    few,
)
from qmanifest.dialects.documents.names import Name, Names
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.lowering.claims import as_entry
from qmanifest.dialects.lowering.founding import lower_lines
from qmanifest.dialects.lowering.mlx_layout import (
    Mode,
    Positive,
    mode_of,
)
from qmanifest.dialects.lowering.records import make_many
from qmanifest.dialects.lowering.whole_names import as_whole_name
from qmanifest.dialects.tensor_map.lines import (
    entry_defects,
    keeping,
    plain_lines,
    quantizing,
)
from qmanifest.dialects.tensor_map.scan import Scan, count_defects, label_defects
from qmanifest.errors import EmitError
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_entry


class TensorEntry(TypedDict, total=False):
    """How one tensor is stored; what is absent is as at the top level."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc] # pydantic's own way

    bits: Positive
    group_size: Positive
    mode: Mode
    shape: Annotated[list[Annotated[int, Ge(0)]], Len(2), FailFast()]
    """`(out_features, in_features)` before quantization, experts in front."""


class TensorMap(Document):
    """The document exactly as stored: same keys, same nesting, no defaults."""

    vocabulary: ClassVar[tuple[str, ...]] = tuple(TensorEntry.__annotations__)
    independent: ClassVar[str | None] = "tensors"

    bits: Positive
    """Bits of every entry that says nothing."""
    group_size: Positive
    """Inputs per scale of every entry that says nothing."""
    mode: Mode = "affine"
    kept_16bit: Names
    """Names, globs or `re:` patterns of the tensors that stay 16-bit."""
    tensors: dict[Name, TensorEntry]
    """The quantized tensors; a key may be a pattern where it has no shape."""
    scan: Scan | None = Field(default=None)
    """Where the choice came from. Checked for consistency, never followed."""

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """The keys of `tensors` as patterns."""
        if all("shape" in entry for entry in self.distinct.values()):
            names, count = self.tensors, len(self.tensors)
            return make_many(Pattern, count, names, repeat(Syntax.EXACT))
        return tuple(_pattern(name, entry) for name, entry in self.tensors.items())

    @cached_property
    def distinct(self) -> dict[int, TensorEntry]:
        """The entries by their `id`: equal ones mostly are one object (`alike`)."""
        entries = self.tensors.values()
        return dict(zip(map(id, entries), entries, strict=True))


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return ((),) if "tensors" in raw or "kept_16bit" in raw else ()


def _pattern(name: str, entry: TensorEntry) -> Pattern:
    """Read a key of `tensors`: a plain name where it has a shape of its own."""
    return Pattern(name, Syntax.EXACT) if "shape" in entry else read_entry(name)


def _components(document: TensorMap, place: Place) -> tuple[ComponentNames, ...]:
    return (
        ComponentNames(
            "",
            place.pointer(),
            document.patterns,
            tuple(read_entry(text) for text in document.kept_16bit),
        ),
    )


def _lower(document: TensorMap, place: Place, indexes: Indexes | None) -> Lowered:
    (named,) = _components(document, place)
    index = None if indexes is None else indexes.get("")
    lines = plain_lines(document, named, place) or tuple(quantizing(document, named))
    component, defects = lower_lines(named, keeping(named), lines, place, index)
    # without an index a pattern has no matches, so that nothing can be counted
    counted = index is not None or all(entry.matches for entry in component.entries)
    found = (
        *defects,
        *few(entry_defects(document, place)),
        *label_defects(document.scan, document.bits, document.group_size, place),
        *(count_defects(document.scan, component, place) if counted else ()),
    )
    return Lowered(Manifest("tensor-map", place.file, (component,)), found)


def _emit(manifest: Manifest) -> TensorMap:
    if len(manifest.components) != 1:
        raise EmitError(
            f"tensor-map describes one model; the manifest has "
            f"{len(manifest.components)}. Emit q4-lists instead."
        )
    (component,) = manifest.components
    said = {weight.name: _said(weight) for weight in component.weights}
    common = Counter(said.values()).most_common(1)
    mode, bits, group_size = common[0][0] if common else ("affine", 4, 64)
    return emitted(
        TensorMap,
        {
            "bits": bits,
            "group_size": group_size,
            "mode": mode,
            "kept_16bit": sorted(_kept_texts(component)),
            "tensors": {
                weight.name if weight.shape else as_entry(weight.name): _entry(
                    weight, said[weight.name], mode
                )
                for weight in component.weights
            },
        },
    )


def _said(weight: Weight) -> tuple[Mode, int, int]:
    """Find the mode, bits and group size of a weight."""
    mode = mode_of(weight.scheme)
    if mode is None:
        raise EmitError(f"tensor-map has no words for {weight.name!r}: {weight.scheme}")
    return mode, weight.scheme.bits, weight.scheme.group_size


def _entry(weight: Weight, said: tuple[Mode, int, int], usual: Mode) -> TensorEntry:
    """Write one weight as an entry that says everything but the usual mode."""
    mode, bits, group_size = said
    entry = TensorEntry(bits=bits, group_size=group_size)
    if mode != usual:
        entry["mode"] = mode
    if weight.shape is not None:
        entry["shape"] = list(weight.shape)
    return entry


def _kept_texts(component: Component) -> set[str]:
    """Name what is kept: the tensors, and the lines that matched none (yet)."""
    names = {kept.name for kept in component.kept}
    texts = {as_entry(name) for name in names}
    for entry in component.entries:
        if entry.purpose == "keep" and not names.issuperset(entry.matches or ("",)):
            texts.add(as_whole_name(entry.pattern, entry.appended))
    return texts


DIALECT = Dialect(
    id="tensor-map",
    title="one entry per quantized tensor, and a list of those kept 16-bit",
    file_name="quant_config.json",
    document=TensorMap,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
)
