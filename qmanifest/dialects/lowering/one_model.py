"""What dialects have in common whose configs describe a single model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.base import ComponentNames
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.errors import EmitError
from qmanifest.findings import Severity
from qmanifest.patterns import Pattern, read_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.dialects.base import Document, Place
    from qmanifest.manifest import Component, Manifest
    from qmanifest.patterns import Syntax

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""


def components(_document: Document, place: Place) -> tuple[ComponentNames, ...]:
    """Name the one component, which has no name."""
    return (ComponentNames("", place.pointer()),)


def keeps(
    dialect: str, key: str, texts: Sequence[str] | None, syntax: Syntax
) -> list[Claim]:
    """List the modules that a list of the config keeps 16-bit.

    That one is absent is a note: lists are written for families of models.
    """
    return [
        Claim(
            (key, number),
            Pattern(text, syntax),
            "keep",
            Severity.NOTE,
            SUFFIX,
            *read_by(dialect, key),
        )
        for number, text in enumerate(texts or ())
    ]


def only(manifest: Manifest, dialect: str) -> Component:
    """Give the one component of a manifest.

    Raises:
        EmitError: it has none, or several.

    """
    if len(manifest.components) != 1:
        raise EmitError(f"{dialect} describes one model")
    return manifest.components[0]


def modules_kept(component: Component) -> list[str]:
    """Name the modules that a component keeps 16-bit."""
    return [each.name.removesuffix(SUFFIX) for each in component.kept]
