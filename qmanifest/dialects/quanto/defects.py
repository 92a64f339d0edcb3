"""What a quanto config says that cannot be, or that the tensors contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dialects.quanto.schemes import KINDS
from qmanifest.findings import Defect, DefectKind, Location, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.quanto import QuantoConfig
    from qmanifest.manifest import Entry
    from qmanifest.tensors import TensorInfo


def impossible(document: QuantoConfig, place: Place) -> Iterator[Defect]:
    """Find the types that quanto does not have."""
    said: list[tuple[tuple[str, ...], str]] = [
        ((module, "weights"), kind) for module, kind in document.by_module().items()
    ]
    if document.weights is not None:
        said.append((("weights",), document.kind()))
    for parts, kind in said:
        if kind not in KINDS:
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"weights is {kind!r}, which quanto does not have",
                *parts,
                expected=", ".join(KINDS),
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


def contradiction(
    place: Place, said: Entry | None, codes: TensorInfo, kind: str
) -> Defect:
    """Report codes that are stored in bytes of another type."""
    pointer = said.pointer if said else place.pointer("weights")
    problem = Problem(
        f"{place.file}#{pointer} says {kind} and {codes.name!r} is stored {codes}",
        (Location(place.file, pointer), Location(codes.file, tensor=codes.name)),
        expected=kind,
        actual=codes.dtype,
        hint="say the type that is stored, or convert again",
    )
    return Defect(DefectKind.CONTRADICTION, problem)
