"""Tables of results, shown as text or as Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.cli.console import say, say_table

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


@dataclass(frozen=True, slots=True)
class Table:
    """A head and rows as long as it; all columns but the first hold numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def say_tables(tables: Sequence[Table], notes: Sequence[str]) -> None:
    """Print tables as aligned text, and sentences below them."""
    for number, table in enumerate(tables):
        if number:
            say("")
        say_table((table.head, *table.rows), right=range(1, len(table.head)))
    if notes:
        say("", *notes)


def say_markdown(tables: Sequence[Table], notes: Sequence[str]) -> None:
    """Print tables as Markdown, and sentences as a list below them."""
    for number, table in enumerate(tables):
        if number:
            say("")
        columns = len(table.head) - 1
        say(_row(table.head), _row(("---", *["---:"] * columns), raw=True))
        say(*(_row(row) for row in table.rows))
    if notes:
        say("", *(f"- {_plain(note)}" for note in notes))


def _row(cells: Sequence[str], *, raw: bool = False) -> str:
    return f"| {' | '.join(cells if raw else map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Keep names from being read as markup."""
    return _MARKUP.sub(r"\\\1", text)


def number(value: int | None) -> str:
    """Write a number in groups of three digits; a dash for none."""
    return "-" if value is None else f"{value:,}"
