"""Printing: lines for people are made safe here, and whole results go to files."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def say(*lines: str) -> None:
    """Print lines for people, each as one line whatever it holds."""
    from qmanifest.reports.printable import printable

    for line in lines:
        sys.stdout.write(f"{printable(line)}\n")


def say_json(value: object) -> None:
    """Print one JSON document, in ASCII."""
    sys.stdout.write(f"{json.dumps(value, indent=1, allow_nan=False)}\n")


def say_table(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print rows in aligned columns; `right` has the columns of numbers."""
    for line in aligned(rows, right):
        sys.stdout.write(f"{line}\n")


def aligned(rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Write rows as lines of aligned columns, two spaces apart.

    Args:
        rows: texts; all rows have as many.
        right: columns of numbers, aligned to the right.

    """
    from qmanifest.reports.printable import printable

    cells = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if number in right else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def counted(number: int, noun: str) -> str:
    """Write a number and its noun.

    >>> counted(1, "entry"), counted(1200, "entry")
    ('1 entry', '1,200 entries')
    """
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def deliver(text: str, output: Path | None) -> None:
    """Print a finished text, or write it to a file that appears whole or not at all."""
    if output is None:
        sys.stdout.write(text)
        return
    from qmanifest.writing.atomic import write_text

    write_text(output, text)


def wants_color(output: Path | None) -> bool:
    """Tell whether colours reach a person: a terminal, and no wish against them."""
    return output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
