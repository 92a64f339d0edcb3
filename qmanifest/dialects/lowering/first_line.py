"""Formats in which the first line that matches a module decides about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmanifest.manifest import Component, Entry


def first_line_decides(component: Component) -> Component:
    """Drop what a line keeps that an earlier one quantizes, and the other way round.

    The entries stay as they are: they say what each line matches.
    """
    first: dict[str, Entry] = {}
    for entry in component.entries:
        for name in entry.matches:
            first.setdefault(name, entry)
    kept = tuple(k for k in component.kept if first[k.name].purpose == "keep")
    names = {each.name for each in kept}
    weights = tuple(w for w in component.weights if w.name not in names)
    return replace(component, weights=weights, kept=kept)
