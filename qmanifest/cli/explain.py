"""`qmanifest explain`: a rule's page, or what makes a tensor what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say
from qmanifest.cli.options import ComponentOption, ConfigOption
from qmanifest.cli.values import UsageError, chosen, placed

EXAMPLES: Final = """\
  qmanifest explain QM203
  qmanifest explain dead-entry
  qmanifest explain ./model layers.0.q_proj.weight"""

SubjectArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="CODE|PATH", help="A rule's code, or a checkpoint.")
]
TensorArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="TENSOR", help="A tensor of that checkpoint.", show_default=False
    ),
]


def explain(
    subject: SubjectArgument,
    tensor: TensorArgument = None,
    config: ConfigOption = None,
    component: ComponentOption = None,
) -> None:
    """Explain a rule, or what makes a tensor what it is.

    For a tensor: which line of the config claims it, what that promises of every part,
    and what is stored.
    """
    from qmanifest.cli.story import story_of

    if tensor is None and Path(subject).exists():
        raise UsageError(f"which tensor of {subject!r}? Name it after the path.")
    if tensor is None:
        say(*_page(subject))
    else:
        say(*story_of(Path(subject), tensor, config, placed(component)))


def _page(subject: str) -> list[str]:
    """Write a rule's page, found by code or name."""
    from qmanifest.rules import RULES

    by_name = {rule.code: rule for rule in RULES} | {rule.name: rule for rule in RULES}
    wanted = subject.upper() if subject.upper() in by_name else subject
    found = by_name[chosen(wanted, list(by_name), "rule")]
    needs = found.needs.name.lower()
    title = f"{found.code} {found.name} ({found.severity}, needs: {needs})"
    return [title, "", *found.page.split("\n")]
