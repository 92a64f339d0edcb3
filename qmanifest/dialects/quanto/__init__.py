"""`quanto`: optimum-quanto's tensors, with its map or transformers' config.

`quanto_qmap.json` has what each module is; transformers has one type for all. How
many weights share a scale is in neither: it shows by the number of scales.

Source: https://github.com/huggingface/optimum-quanto, `nn/qmodule.py`;
described in docs/dialects/quanto.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import ConfigDict, Field

from qmanifest.dialects.base import (
    Dialect,
    Document,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
    few,
)
from qmanifest.dialects.documents.blocks import by_method
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX, components, keeps, only
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.quanto.defects import contradiction, impossible
from qmanifest.dialects.quanto.schemes import (
    BYTES,
    KINDS,
    NARROW,
    kind_as_stored,
    scheme_of,
)
from qmanifest.errors import EmitError
from qmanifest.families import QUANTO, QUANTO_PACKED
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.families import PartNames
    from qmanifest.findings import Defect
    from qmanifest.manifest import Component, Entry


class QuantoConfig(Document):
    """The document exactly as stored: transformers' keys, or modules with theirs."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    quant_method: str | None = None
    weights: str | None = None
    """`int8`, `int4`, `int2` or `float8`, for all modules; `int8` by default."""
    activations: str | None = None
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit, as transformers reads them."""

    def kind(self) -> str:
        """Give the type of all modules, by the name that quanto has for it."""
        return f"q{self.weights or 'int8'}"

    def by_module(self) -> dict[str, str]:
        """Give the type of each module that the map of a file names."""
        return {
            module: str(own.get("weights"))
            for module, own in self.__pydantic_extra__.items()
            if isinstance(own, dict)
        }


def _locate(raw: Raw) -> tuple[Keys, ...]:
    found = by_method(raw, ("quanto",))
    whole = all(isinstance(own, dict) and "weights" in own for own in raw.values())
    return found or (((),) if raw and whole else ())


def _claims(document: QuantoConfig) -> list[Claim]:
    """List what stays 16-bit, and what the map names."""
    kept = keeps(
        "quanto",
        "modules_to_not_convert",
        document.modules_to_not_convert,
        Syntax.BOUNDARY,
    )
    return kept + [
        Claim(
            (module,),
            Pattern(module, Syntax.EXACT),
            "quantize",
            None,
            SUFFIX,
            *read_by("quanto", "quanto_qmap"),
        )
        for module, kind in document.by_module().items()
        if kind != "none"
    ]


def _lower(document: QuantoConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    kinds = document.by_module()
    by_pointer = {place.pointer(module): kind for module, kind in kinds.items()}
    unnamed = None if kinds else document.kind()

    contradictions: list[Defect] = []

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        kind = by_pointer[said.pointer] if said else unnamed
        if found.family not in {QUANTO, QUANTO_PACKED} or kind is None:
            return None
        names = found.family.names
        shifts = None if index is None else index.get(names.name(name, "zeros"))
        stored = kind_as_stored(kind, found.codes.dtype)
        if stored != kind and kind in KINDS:
            contradictions.append(contradiction(place, said, found.codes, kind))
        scheme = scheme_of(stored, found.codes, shifts)
        pointer = said.pointer if said else place.pointer()
        if scheme is None:
            return None
        return Weight(name, scheme, pointer, names=names)

    saying = Saying(_claims(document), every_linear=not kinds)
    component, defects = lower_stored(saying, place, index, make)
    named = (*component.weights, *_not_stored(component, kinds, place))
    component = replace(component, weights=named)
    found = (*defects, *impossible(document, place), *few(contradictions))
    return Lowered(Manifest("quanto", place.file, (component,)), found)


def _names(kind: str) -> PartNames:
    return (QUANTO_PACKED if kind in NARROW else QUANTO).names


def _not_stored(
    component: Component, kinds: Mapping[str, str], place: Place
) -> Iterator[Weight]:
    """Promise the modules of a map that are not stored quantized."""
    stored = {weight.name for weight in component.weights}
    for module, kind in kinds.items():
        scheme = scheme_of(kind, None, None)
        if scheme is not None and module + SUFFIX not in stored:
            pointer = place.pointer(module)
            yield Weight(module + SUFFIX, scheme, pointer, names=_names(kind))


def _emit(manifest: Manifest) -> QuantoConfig:
    component = only(manifest, "quanto")
    document: dict[str, Mapping[str, str]] = {}
    for weight in component.weights:
        module = weight.name.removesuffix(SUFFIX)
        document[module] = {"weights": _kind(weight), "activations": "none"}
    return emitted(QuantoConfig, document)


def _kind(weight: Weight) -> str:
    """Name the type of a weight."""
    scheme = weight.scheme
    if isinstance(scheme, Integer) and scheme.pack == "u8-split-low":
        return f"qint{scheme.bits}"
    for kind in BYTES:
        if scheme == scheme_of(kind, None, None):
            return kind
    raise EmitError(f"quanto has no words for {weight.name!r}: {scheme}")


DIALECT: Final = Dialect(
    id="quanto",
    title="optimum-quanto's tensors",
    file_name="quanto_qmap.json",
    document=QuantoConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
)
