"""Keys of one document that say the same, and have to say it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import DefectKind, Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Document, Place
    from qmanifest.findings import Defect


def contradictions(
    document: Document, place: Place, twice: tuple[tuple[str, ...], ...]
) -> Iterator[Defect]:
    """Report keys of one meaning and different values; texts in either case.

    Args:
        document: the document.
        place: where it lies.
        twice: the keys of each meaning, the best known first.

    """
    for keys in twice:
        said = [(key, getattr(document, key)) for key in keys]
        (first, value), *others = (
            *((key, value) for key, value in said if value is not None),
            ("", None),
        )
        for key, other in others:
            if key and str(other).lower() != str(value).lower():
                yield place.defect(
                    DefectKind.CONTRADICTION,
                    f"{first} is {value!r} and {key} is {other!r}, which mean the same",
                    key,
                    also=(Location(place.file, place.pointer(first)),),
                    expected=value,
                    actual=other,
                    hint="make both say the same; readers differ in which they read",
                )
