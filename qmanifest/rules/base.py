"""What a rule is: a code, a name, a severity, what it needs, and how it checks.

A rule's docstring is its documentation page. A rule yields problems; only `Rule.run`
makes findings of them, so that no rule can report under another's code.
"""

from __future__ import annotations

import inspect
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from qmanifest.findings import Finding, Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component


class Depth(IntEnum):
    """How much of a checkpoint a rule has to see; each depth includes those before."""

    FILES = 0
    """That files are there and can be read."""
    MANIFEST = 1
    """The config."""
    HEADERS = 2
    """Every shard's header."""
    DATA = 3
    """The tensors' bytes (`--deep`)."""
    REFERENCE = 4
    """The 16-bit original (`--base`)."""


class Check(Protocol):
    """A rule's body."""

    __doc__: str | None

    def __call__(self, checkpoint: Checkpoint, /) -> Iterable[Problem]:
        """Yield every problem."""


class Rule(msgspec.Struct, frozen=True):
    """One thing that must hold."""

    code: str
    name: str
    severity: Severity
    needs: Depth
    check: Check
    absence: bool = False
    """Whether it proves absence, so that an unread header would make it lie."""
    any_files: bool = False
    """Whether it can judge stored tensors that no config describes."""

    @property
    def family(self) -> str:
        """The first digit of the code: `QM2` for names."""
        return self.code[:3]

    @property
    def page(self) -> str:
        """The rule's documentation, as Markdown without a title."""
        return inspect.cleandoc(self.check.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0]

    def run(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        """Check, and judge what is found."""
        for problem in self.check(checkpoint):
            yield Finding(
                self.code,
                problem.severity or self.severity,
                problem.message,
                problem.hint,
                problem.at,
                problem.expected,
                problem.actual,
            )


def rule(
    code: str,
    name: str,
    severity: Severity,
    *,
    needs: Depth,
    absence: bool = False,
    any_files: bool = False,
) -> Callable[[Check], Rule]:
    """Make a rule of the function that checks it."""

    def make(check: Check) -> Rule:
        return Rule(code, name, severity, needs, check, absence, any_files)

    return make


def of_component(component: Component) -> str:
    """Name the component in a message, where there is more than one to mean."""
    return f" of {component.name!r}" if component.name else ""
