"""`q4-lists`: one list of quantized tensors per model, one width for all of them.

Example document: examples/q4_lists/quant_config.json
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, model_validator

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
from qmanifest.dialects.documents.names import Names
from qmanifest.dialects.documents.open_keys import read_open
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.prose import prose_defects
from qmanifest.dialects.lowering.claims import Claim, as_entry
from qmanifest.dialects.lowering.founding import Keeping, Quantizing, lower_lines
from qmanifest.dialects.lowering.mlx_layout import Positive, impossible, mode_of
from qmanifest.dtypes import FLOAT16
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest
from qmanifest.patterns import Syntax, read_entry
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.findings import Defect
    from qmanifest.manifest import Component

Quant = Literal["q2", "q3", "q4", "q5", "q6", "q8"]
LIST_KEY: Final = r"^(.+)_(q[234568])$"
"""`emb_q4`: the list of component `emb`."""
KEPT: Final = ("F16",)
"""This dialect's compute is fp16, so kept tensors are stored so."""
REGEX_ONLY: Final = re.compile(r"[\\^$|()+]")
"""Characters that a plain substring has only when a regular expression was meant."""


def _only_lists(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what `read_open` checks."""
    schema["patternProperties"] = {LIST_KEY: schema.pop("additionalProperties")}
    schema["additionalProperties"] = False
    schema["not"] = {"propertyNames": {"enum": sorted(schema["properties"])}}


class Q4Lists(Document):
    """The document exactly as stored: same keys, same nesting, no defaults."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_only_lists)
    __pydantic_extra__: dict[str, Names] = Field(init=False)

    quant: Quant
    """Bits of every listed tensor."""
    group: Positive
    """Input features per scale."""
    scheme: str
    """Prose for people. Kept and shown, never the source of a number."""
    protected_fp16: Names
    """Substrings, globs or `re:` patterns: what one matches stays float16."""

    @model_validator(mode="wrap")
    @classmethod
    def _only_lists(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - JSON
        """Refuse keys that are neither fields nor a component's list."""
        return read_open(cls, value, read, LIST_KEY, "<component>_<quant>")

    @property
    def bits(self) -> int:
        """Bits of every listed tensor, as a number."""
        return int(self.quant[1:])

    def lists(self) -> dict[str, list[str]]:
        """Give every component's list by its key."""
        return self.__pydantic_extra__


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return ((),) if "quant" in raw or "protected_fp16" in raw else ()


def _component(key: str) -> str:
    """Name the component that a list's key is of: `emb` for `emb_q4`."""
    return key.rpartition("_")[0]


def _components(document: Q4Lists, place: Place) -> tuple[ComponentNames, ...]:
    protected = tuple(
        read_entry(text, plain=Syntax.SUBSTRING) for text in document.protected_fp16
    )
    return tuple(
        ComponentNames(
            _component(key),
            place.pointer(key),
            tuple(map(read_entry, names)),
            protected,
        )
        for key, names in document.lists().items()
    )


def _quantizing(
    document: Q4Lists, key: str, named: ComponentNames
) -> Iterator[Quantizing]:
    """Walk over the lines of one list."""
    scheme = Affine(document.bits, document.group, FLOAT16, "u32-lsb")
    for number, pattern in enumerate(named.patterns):
        plain = pattern.syntax is Syntax.EXACT
        unused = None if plain else Severity.ERROR  # an absent name is QM201's
        yield Quantizing(Claim((key, number), pattern, "quantize", unused), scheme)


def _lower(document: Q4Lists, place: Place, indexes: Indexes | None) -> Lowered:
    components: list[Component] = []
    defects: list[Defect] = []
    names = _components(document, place)
    for key, named in zip(document.lists(), names, strict=True):
        keeping = [
            Claim(("protected_fp16", number), pattern, "keep", Severity.NOTE)
            for number, pattern in enumerate(named.keeps)
        ]
        lines = tuple(_quantizing(document, key, named))
        index = None if indexes is None else indexes.get(named.name)
        component, found = lower_lines(
            named, Keeping(keeping, KEPT), lines, place, index
        )
        components.append(component)
        defects += found
    defects += few(_document_defects(document, place))
    defects += _protected_defects(document, place)
    defects += prose_defects(document.scheme, document.bits, place, "scheme")
    unique = tuple(dict.fromkeys(defects))  # a bad protected pattern is met per list
    return Lowered(Manifest("q4-lists", place.file, _used_once(components)), unique)


def _used_once(components: Sequence[Component]) -> tuple[Component, ...]:
    """Excuse the protected lines of one component that another one uses."""
    used = {e.pointer for c in components for e in c.entries if e.matches}
    return tuple(
        replace(
            component,
            entries=tuple(
                replace(entry, unused=None) if entry.pointer in used else entry
                for entry in component.entries
            ),
        )
        for component in components
    )


def _document_defects(document: Q4Lists, place: Place) -> Iterator[Defect]:
    """Find the numbers that do not exist together, and lists of another width."""
    misfit = impossible("affine", document.bits, document.group)
    if misfit is not None:
        reason = misfit.reason.replace("group_size", "group")
        yield place.defect(DefectKind.IMPOSSIBLE_SCHEME, reason, "group")
    for key in document.lists():
        expected = f"{_component(key)}_{document.quant}"
        if key != expected:
            yield place.defect(
                DefectKind.CONTRADICTION,
                f"list {key!r} is of another width than quant {document.quant!r}",
                key,
                expected=expected,
                actual=key,
                hint=f"call it {expected}, or correct quant",
            )


def _protected_defects(document: Q4Lists, place: Place) -> Iterator[Defect]:
    """Find the protected entries that are not plain substrings, or hardly meant so."""
    for number, text in enumerate(document.protected_fp16):
        if read_entry(text, plain=Syntax.SUBSTRING).syntax is not Syntax.SUBSTRING:
            kind, severity = "read as a pattern of whole names", Severity.NOTE
        elif REGEX_ONLY.search(text):
            kind, severity = "read as a plain substring", Severity.WARNING
        else:
            continue
        yield place.defect(
            DefectKind.FOREIGN_SYNTAX,
            f"protected_fp16 has substrings; {text!r} is {kind}",
            *("protected_fp16", number),
            hint="write a plain substring, which every reader of q4-lists knows",
            severity=severity,
        )


def _emit(manifest: Manifest) -> Q4Lists:
    schemes = {(w.scheme.bits, w.scheme.group_size) for _, w in manifest.weights()}
    if len(schemes) != 1:
        raise EmitError(
            f"q4-lists has one width and group for all tensors; the manifest has "
            f"{len(schemes)}: {sorted(schemes)}. Emit tensor-map instead."
        )
    ((bits, group_size),) = schemes
    modes = {mode_of(weight.scheme) for _, weight in manifest.weights()}
    if modes != {"affine"} or not all(c.name for c in manifest.components):
        raise EmitError("q4-lists has affine schemes and named components only")
    lists = {
        f"{component.name}_q{bits}": [as_entry(w.name) for w in component.weights]
        for component in manifest.components
    }
    return emitted(
        Q4Lists,
        {
            "quant": f"q{bits}",
            "group": group_size,
            "scheme": f"group-wise affine, {bits}-bit, fp16 compute",
            "protected_fp16": _protected_texts(manifest),
            **lists,
        },
    )


def _protected_texts(manifest: Manifest) -> list[str]:
    """List the lines that keep tensors; each name where there are no lines."""
    texts: dict[str, None] = {}
    for component in manifest.components:
        claimed: set[str] = set()
        for entry in component.entries:
            if entry.purpose == "keep":
                texts[entry.pattern.text] = None
                claimed.update(entry.matches)
        texts.update({k.name: None for k in component.kept if k.name not in claimed})
    return list(texts)


DIALECT = Dialect(
    id="q4-lists",
    title="one list of quantized tensors per model, one width for all",
    file_name="quant_config.json",
    document=Q4Lists,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
)
