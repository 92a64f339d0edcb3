"""What every name that a pattern matches holds: the key to a fast search.

Clues may only be too few. Wrong ones would hide names that a pattern matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qmanifest.patterns.glob_forms import count, expand
from qmanifest.patterns.globs import Choice, Glob, Node

_MAX_OPTIONS: Final = 256
"""The most texts that one segment is tried for."""


@dataclass(frozen=True, slots=True)
class Clues:
    """What is common to all the names that a pattern matches."""

    texts: tuple[str, ...] = ()
    """Each name holds all of these."""
    segments: tuple[tuple[str, ...], ...] = ()
    """Of each of these, a name has at least one as a whole dot-separated segment."""


def text_clues(text: str, *, starts: bool = False, ends: bool = False) -> Clues:
    """Draw clues from a text that names hold, start with or end with."""
    pieces = text.split(".")
    whole = pieces[0 if starts else 1 : len(pieces) if ends else len(pieces) - 1]
    return Clues((text,), tuple((piece,) for piece in whole))


def joined(clues: list[Clues]) -> Clues:
    """Put several clues together."""
    return Clues(
        tuple(text for each in clues for text in each.texts),
        tuple(options for each in clues for options in each.segments),
    )


def glob_clues(glob: Glob) -> Clues:
    """Draw clues from a glob: literal text, and segments without a wildcard."""
    segments: list[tuple[str, ...]] = []
    current: tuple[str, ...] | None = ("",)  # None: not known what it starts with
    for node in glob:
        if not isinstance(node, str):
            current = _continued(current, node)
            continue
        first, *rest = node.split(".")
        current = _continued(current, first)
        for piece in rest:
            segments += [current] if current is not None else []
            current = (piece,)
    segments += [current] if current is not None else []
    texts = tuple(node for node in glob if isinstance(node, str))
    return Clues(texts, tuple(segments))


def _continued(current: tuple[str, ...] | None, node: Node) -> tuple[str, ...] | None:
    """Continue what a segment may be by a node; None where that has no short list."""
    if current is None or not isinstance(node, str | Choice):
        return None
    options = [node] if isinstance(node, str) else _short_list(node)
    if not options or len(options) * len(current) > _MAX_OPTIONS:
        return None
    return tuple(start + option for start in current for option in options)


def _short_list(choice: Choice) -> list[str]:
    """List the alternatives of a brace group; none where some could hold a dot."""
    number = count((choice,))
    if number is None or number > _MAX_OPTIONS:
        return []
    texts = list(expand((choice,)))
    return [] if any("." in text for text in texts) else texts
