"""`tensor-map`: one entry per quantized tensor, and a list of those kept 16-bit.

Example document: examples/tensor_map/quant_config.json
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, ClassVar

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
from qmanifest.dialects.claims import Claim, as_entry
from qmanifest.dialects.founding import Keeping, Quantizing, lower_lines
from qmanifest.dialects.mlx_layout import (
    AFFINE_GROUPS,
    Mode,
    Positive,
    impossible,
    mode_of,
    scheme_of,
)
from qmanifest.dialects.names import Name, Names
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.scan import Scan, count_defects, label_defects
from qmanifest.dialects.whole_names import as_whole_name
from qmanifest.dtypes import FLOAT16
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.findings import Defect


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
            tuple(_pattern(name, entry) for name, entry in document.tensors.items()),
            tuple(read_entry(text) for text in document.kept_16bit),
        ),
    )


def _keeping(named: ComponentNames) -> Keeping:
    """List the lines that keep; a plain name that is dead is worse than a pattern."""
    claims = []
    for number, pattern in enumerate(named.keeps):
        plain = pattern.syntax is Syntax.EXACT
        unused = Severity.ERROR if plain else Severity.WARNING
        claims.append(Claim(("kept_16bit", number), pattern, "keep", unused))
    return Keeping(claims, FLOAT16)


def _quantizing(document: TensorMap, named: ComponentNames) -> Iterator[Quantizing]:
    """Walk over the entries with what each promises."""
    for (name, entry), pattern in zip(
        document.tensors.items(), named.patterns, strict=True
    ):
        plain = pattern.syntax is Syntax.EXACT
        unused = None if plain else Severity.ERROR  # an absent name is QM201's
        yield Quantizing(
            Claim(("tensors", name), pattern, "quantize", unused),
            scheme_of(*_numbers(document, entry)),
            tuple(entry["shape"]) if "shape" in entry else None,
        )


def _numbers(document: TensorMap, entry: TensorEntry) -> tuple[Mode, int, int]:
    """Resolve an entry's mode, bits and group size against the top level."""
    return (
        entry.get("mode", document.mode),
        entry.get("bits", document.bits),
        entry.get("group_size", document.group_size),
    )


def _entry_defects(document: TensorMap, place: Place) -> Iterator[Defect]:
    """Find the entries that no reader could have written."""
    for name, entry in document.tensors.items():
        mode, bits, group_size = _numbers(document, entry)
        misfit = impossible(mode, bits, group_size)
        if misfit is not None:
            own = [key for key in (misfit.key, "mode") if key in entry]
            parts = ("tensors", name, own[0]) if own else (misfit.key,)
            yield place.defect(
                DefectKind.IMPOSSIBLE_SCHEME,
                f"{name!r}: {misfit.reason}",
                *parts,
                tensor=name,
            )
        elif "shape" in entry and entry["shape"][-1] % group_size:
            width = entry["shape"][-1]
            fits = [size for size in AFFINE_GROUPS if width % size == 0]
            other = f"use group_size {fits[-1]}, or keep" if fits else "keep"
            yield place.defect(
                DefectKind.GROUP_DIVISION,
                f"{name!r} has {width} input features, which group_size {group_size} "
                "does not divide",
                *("tensors", name, "shape"),
                tensor=name,
                expected=f"a multiple of {group_size}",
                actual=width,
                hint=f"{other} the tensor 16-bit",
            )


def _lower(document: TensorMap, place: Place, indexes: Indexes | None) -> Lowered:
    (named,) = _components(document, place)
    index = None if indexes is None else indexes.get("")
    lines = tuple(_quantizing(document, named))
    component, defects = lower_lines(named, _keeping(named), lines, place, index)
    # without an index a pattern has no matches, so that nothing can be counted
    counted = index is not None or all(entry.matches for entry in component.entries)
    found = (
        *defects,
        *few(_entry_defects(document, place)),
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
