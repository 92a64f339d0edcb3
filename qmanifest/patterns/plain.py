"""Plain texts as patterns: where in a name a text may stand.

To add a way, write the function that compiles it and name it in `PLAIN`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from qmanifest.patterns.clues import Clues, text_clues
from qmanifest.patterns.compiled import Compiled
from qmanifest.patterns.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable

_LEFT_OUT: Final = frozenset({"model", "layers"})
"""Segments that a tag leaves out, beside numbers."""
_BLOCK: Final = re.compile(r"(?:^|\.)[0-9]+\.")
"""The number of a block, up to what stands behind it."""


def tag_of(module: str) -> str:
    """Leave `model`, `layers` and numbers out of a module's name.

    >>> tag_of("model.layers.31.self_attn.k_proj")
    'self_attn.k_proj'

    Source: https://github.com/dropbox/hqq, `hqq/models/base.py`.
    """
    segments = module.split(".")
    return ".".join(s for s in segments if s not in _LEFT_OUT and not s.isnumeric())


def name_in_block(module: str) -> str:
    """Take what stands behind the first number of a name; all of it without one.

    >>> name_in_block("model.layers.31.self_attn.k_proj")
    'self_attn.k_proj'
    """
    number = _BLOCK.search(module)
    return module[number.end() :] if number else module


def _exact(text: str) -> Compiled:
    return Compiled(text.__eq__, names=(text,))


def _substring(text: str) -> Compiled:
    return Compiled(lambda name: text in name, text_clues(text), is_quick=True)


def _prefix(text: str) -> Compiled:
    clues = text_clues(text, starts=True)
    return Compiled(lambda name: name.startswith(text), clues, is_quick=True)


def _suffix(text: str) -> Compiled:
    clues = text_clues(text, ends=True)
    return Compiled(lambda name: name.endswith(text), clues, is_quick=True)


def _segment(text: str) -> Compiled:
    clues = text_clues(text, starts=True, ends=True)
    if "." not in text:
        return Compiled(lambda name: text in name.split("."), clues)
    start = f"{text}."
    return Compiled(lambda name: f"{name}.".startswith(start), clues)


def _in_block(text: str) -> Compiled:
    return Compiled(lambda name: text in name_in_block(name), text_clues(text))


def _tag(text: str) -> Compiled:
    segments = tuple((segment,) for segment in text.split("."))
    return Compiled(lambda name: tag_of(name) == text, Clues(segments=segments))


PLAIN: Final[dict[Syntax, Callable[[str], Compiled]]] = {
    Syntax.EXACT: _exact,
    Syntax.SUBSTRING: _substring,
    Syntax.PREFIX: _prefix,
    Syntax.SUFFIX: _suffix,
    Syntax.SEGMENT: _segment,
    Syntax.IN_BLOCK: _in_block,
    Syntax.TAG: _tag,
}
"""How to compile a text, by the syntaxes in which no character is special."""
