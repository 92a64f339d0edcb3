"""Stacks of experts, which lists of modules reach by the module that they lie in.

The tensor `X.experts.up_proj` is a parameter of the module `X.experts`, and no list
names parameters. So a list sees `X.experts` as one more module, and what an entry
matches there are all its stacks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from qmanifest.dialects.lowering.one_model import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from qmanifest.manifest import Entry

EXPERTS: Final = ".experts"
"""How the module ends that stacks lie in."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """The names that lists of modules are matched with, stacks among them."""

    names: tuple[str, ...]
    """Every tensor's, and one for each module of stacks."""
    members: Mapping[str, tuple[str, ...]]
    """The stacks behind the name of a module of stacks."""

    def expanded(self, entry: Entry) -> Entry:
        """Put the stacks in place of their module in what an entry matches."""
        if self.members.keys().isdisjoint(entry.matches):
            return entry
        spread = (self.members.get(name, (name,)) for name in entry.matches)
        return replace(entry, matches=tuple(chain.from_iterable(spread)))


def stack_modules(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """List the stacks of each module that has some, by its name as a tensor's."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        module, _, parameter = name.rpartition(".")
        if module.endswith(EXPERTS) and f".{parameter}" != SUFFIX:
            found[module + SUFFIX].append(name)
    return {module: tuple(stacks) for module, stacks in found.items()}


def with_stacks(names: Sequence[str]) -> Stacks:
    """Find the stacks among the names of a model."""
    found = stack_modules(names)
    taken = found.keys() & set(names) if found else set()
    members = {module: each for module, each in found.items() if module not in taken}
    return Stacks((*names, *members), members)
