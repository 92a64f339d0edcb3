"""The modules that a config of compressed-tensors leaves as they are.

The library lists the modules that a model has in memory. Older versions did so under
the names that transformers gives them, which need not be those of the files.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from qmanifest.dialects.lowering.claims import Claim
from qmanifest.findings import Severity
from qmanifest.patterns import READ_BY, READERS
from qmanifest.patterns.reader import looks_like_class
from qmanifest.patterns.syntax import REGEX_MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.tensors import TensorIndex

HEADS: Final = ("lm_head", "embed_out", "output_layer", "embed_tokens", "score")
"""Modules that many lists name and that a model may share with another, or not have."""
_NUMBERED: Final = re.compile(r"[^.]+\.\d+\..+")
"""A module from the stack on that its layer is in: `layers.0.mlp.up_proj`."""


def ignored_claims(
    ignore: Sequence[str], index: TensorIndex | None, suffix: str
) -> Iterator[Claim]:
    """List what is ignored, but for classes, which no file tells of.

    Args:
        ignore: the texts of the list.
        index: the stored tensors, which tell how bad a dead line is.
        suffix: what a module path lacks to be a tensor name.

    """
    reader, *others = READ_BY["compressed-tensors", "ignore"]
    names = _Names(index)
    for number, text in enumerate(ignore):
        if looks_like_class(text):
            continue
        (pattern,) = READERS[reader].patterns(text)
        yield Claim(
            ("ignore", number),
            pattern,
            "keep",
            names.unused(text),
            suffix,
            reader,
            tuple(others),
        )


@dataclass(frozen=True)
class _Names:
    """The names of stored tensors, as far as dead lines ask for them."""

    index: TensorIndex | None

    @cached_property
    def in_order(self) -> list[str]:
        return sorted(self.index or ())

    @cached_property
    def tails(self) -> frozenset[str]:
        """Ends of the names of modules that have tensors."""
        return frozenset(_tail(name.rpartition(".")[0]) for name in self.index or ())

    def unused(self, text: str) -> Severity:
        """Say how bad it is when an ignored text matches nothing.

        A name that nothing is called like was changed. One under which there are
        modules, or that is stored behind another prefix, may be right in memory.
        """
        if text.startswith(REGEX_MARK) or text.rpartition(".")[2] in HEADS:
            return Severity.NOTE
        at = bisect_left(self.in_order, f"{text}.")
        below = at < len(self.in_order) and self.in_order[at].startswith(f"{text}.")
        if below or _tail(text) in self.tails:
            return Severity.WARNING
        return Severity.ERROR


def _tail(module: str) -> str:
    """Cut off what stands before a stack of layers, or all but two components."""
    numbered = _NUMBERED.search(module)
    return numbered[0] if numbered else ".".join(module.split(".")[-2:])
