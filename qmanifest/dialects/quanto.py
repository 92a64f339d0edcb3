"""`quanto`: optimum-quanto's tensors, with its map or transformers' config.

`quanto_qmap.json` has what each module is; transformers has one type for all. How
many weights share a scale is in neither: it shows by the number of scales.

Source: https://github.com/huggingface/optimum-quanto, `nn/qmodule.py`; FORMATS 11 is
retold in docs/dialects/quanto.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import ConfigDict, Field

from qmanifest.dialects.base import (
    ComponentNames,
    Dialect,
    Document,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.blocks import by_method
from qmanifest.dialects.claims import Claim
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.dtypes import FLOAT
from qmanifest.errors import EmitError
from qmanifest.families import QUANTO, QUANTO_PACKED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes import Integer, Scaled, Zero
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorInfo

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
ROW: Final = Spread(1, 0)
BYTES: Final[dict[str, tuple[str, str]]] = {
    "qint8": ("i8", "i8"),
    "qfloat8": ("e4m3", "f8-e4m3"),
    "qfloat8_e4m3fn": ("e4m3", "f8-e4m3"),
    "qfloat8_e5m2": ("e5m2", "f8-e5m2"),
}
"""Types with a byte for a weight: number format and layout."""
NARROW: Final = {"qint2": 2, "qint4": 4}
"""Types with several weights to a byte, and their bits."""


class QuantoConfig(Document):
    """The document exactly as stored: transformers' keys, or modules with theirs."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    quant_method: str | None = None
    weights: str | None = None
    """`int8`, `int4`, `int2` or `float8`, for all modules."""
    activations: str | None = None
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit, as transformers reads them."""

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


def _components(_document: QuantoConfig, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: QuantoConfig) -> list[Claim]:
    """List what stays 16-bit, and what the map names."""
    kept = [
        Claim(
            ("modules_to_not_convert", number),
            Pattern(text, Syntax.BOUNDARY),
            "keep",
            Severity.NOTE,
            SUFFIX,
        )
        for number, text in enumerate(document.modules_to_not_convert or ())
    ]
    return kept + [
        Claim((module,), Pattern(module, Syntax.EXACT), "quantize", None, SUFFIX)
        for module in document.by_module()
    ]


def _defects(document: QuantoConfig, place: Place) -> Iterator[Defect]:
    """Find the types that quanto does not have."""
    known = {*BYTES, *NARROW, "none"}
    said: list[tuple[tuple[str, ...], str]] = [
        ((module, "weights"), kind) for module, kind in document.by_module().items()
    ]
    if document.weights is not None:
        said.append((("weights",), f"q{document.weights}"))
    for parts, kind in said:
        if kind not in known:
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"weights is {kind!r}, which quanto does not have",
                *parts,
                expected=", ".join(sorted(known)),
                actual=kind,
            )
    for key, own in document.__pydantic_extra__.items():
        if not isinstance(own, dict):
            yield place.defect(
                DefectKind.UNKNOWN_KEY,
                f"unknown key {key!r}",
                key,
                severity=Severity.NOTE,
            )


def _scheme(kind: str, found: Found, scales: TensorInfo | None) -> Scheme | None:
    """Name the scheme of a type; the size of a block shows by the number of scales."""
    if kind in BYTES:
        element, pack = BYTES[kind]
        return Scaled(element, pack, ROW, FLOAT, "float", "none", "scale")
    bits = NARROW.get(kind)
    if bits is None:
        return None
    weights = found.codes.nbytes * 8 // bits
    blocks = scales.shape[0] if scales is not None and scales.shape else 0
    columns = weights // blocks if blocks else 0
    return Integer(
        bits,
        "u8-split-low",
        "unsigned",
        Spread(0, columns, "flat-column"),
        FLOAT,
        Zero("shift", FLOAT),
        "sequential",
        "scale",
    )


def _lower(document: QuantoConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    kinds = {
        place.pointer(module): kind for module, kind in document.by_module().items()
    }

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if index is None or found.family not in {QUANTO, QUANTO_PACKED}:
            return None
        kind = kinds[said.pointer] if said else f"q{document.weights}"
        names = found.family.names
        scheme = _scheme(kind, found, index.get(names.name(name, "scales")))
        if scheme is None:
            return None
        pointer = said.pointer if said else place.pointer()
        return Weight(name, scheme, pointer, names=names)

    saying = Saying(_claims(document), every_linear=False)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("quanto", place.file, (component,)), found)


def _emit(manifest: Manifest) -> QuantoConfig:
    if len(manifest.components) != 1:
        raise EmitError("quanto describes one model")
    (component,) = manifest.components
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
    for kind, (element, pack) in BYTES.items():
        made = Scaled(element, pack, ROW, FLOAT, "float", "none", "scale")
        if scheme == made:
            return kind
    raise EmitError(f"quanto has no words for {weight.name!r}: {scheme}")


DIALECT: Final = Dialect(
    id="quanto",
    title="optimum-quanto's tensors",
    file_name="quanto_qmap.json",
    document=QuantoConfig,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
)
