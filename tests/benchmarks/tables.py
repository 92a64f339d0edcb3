"""A run as a table for the terminal, as JSON, and as a page of the documentation."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.harness import Line

HEAD: Final = (
    *("row", "peer", "ours", "theirs", "median", "of least", "asked"),
    *("verdict", "our error", "their error"),
)
TITLES: Final = {
    0: "Beyond the bars",
    1: "1: Quantize and pack",
    2: "2: Quantize without numba",
    3: "3: Dequantize",
    4: "4: One row times a packed matrix",
    5: "5: More rows times a packed matrix",
    6: "6: Headers",
    7: "7: The whole process",
    8: "8: Configs",
    9: "9: Patterns",
    10: "10: Every byte",
}
"""What each bar is about, by its number."""
INTRODUCTION: Final = """\
# Benchmarks

This page is written by `make bench`. [How speed is measured][how] says what the bars
are and why they are ratios. Peers run live, in the same run, in turns with ours.

"median" is the median of the rounds' ratios and "of least" the ratio of the least
times; a bar is reached only where both reach it. For a bar that asks `≥` the ratio is
how many times as fast ours is; for one that asks `≤` it is how many times as long it
takes. A time is a median. An error is against float64, relative to the largest result.
Everyone uses one thread, or two where the row says `2t`.

[how]: decisions/0006-how-speed-is-measured.md
"""


def cells(line: Line) -> tuple[str, ...]:
    """Write one line in the columns of `HEAD`."""
    name = line.row
    if line.note == "limit":
        value = "" if line.ours is None else f"{line.ours:.3g}"
        return (name, line.peer, value, "", "", "", line.asked, line.verdict, "", "")
    return (
        name,
        line.peer,
        _time(line.ours),
        _time(line.theirs),
        _ratio(line.median_ratio),
        _ratio(line.ratio_of_least),
        line.asked,
        line.verdict + (f": {line.note}" if line.note else ""),
        _error(line.our_error),
        _error(line.their_error),
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _error(error: float | None) -> str:
    return "" if error is None else f"{error:.1e}"


def aligned(lines: Iterable[Line]) -> str:
    """Write a table with aligned columns."""
    rows = [HEAD, *map(cells, lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def counted(lines: Iterable[Line]) -> str:
    """Say how many bars are reached."""
    verdicts = [line.verdict for line in lines]
    asked = verdicts.count("pass") + verdicts.count("fail")
    text = f"{verdicts.count('pass')} of {asked} reached"
    absent = verdicts.count("not available")
    return text + (f", {absent} without their peer" if absent else "")


def page(lines: Sequence[Line], machine: Mapping[str, str], date: str) -> str:
    """Write the page of the documentation."""
    ordered = sorted(lines, key=lambda line: line.bar or max(TITLES) + 1)
    groups = [(bar, list(each)) for bar, each in groupby(ordered, lambda x: x.bar)]
    text = [INTRODUCTION, f"Measured on {date}: {counted(lines)}.", ""]
    text += ["| Bar | Reached |", "|---|---|"]
    text += [f"| {TITLES[bar]} | {counted(each)} |" for bar, each in groups]
    for bar, each in groups:
        text += ["", f"## {TITLES[bar]}", "", *_markdown(each)]
    text += ["", "## Machine", "", "| | |", "|---|---|"]
    text += [f"| {name} | {value} |" for name, value in machine.items()]
    return "\n".join(text) + "\n"


def _markdown(lines: Iterable[Line]) -> list[str]:
    """Write a Markdown table, without the columns that are empty."""
    rows = [HEAD, *map(cells, lines)]
    used = [any(row[at] for row in rows[1:]) for at in range(len(HEAD))]
    kept = [[cell for cell, use in zip(row, used, strict=True) if use] for row in rows]
    text = [f"| {' | '.join(row)} |" for row in kept]
    return [text[0], "|---" * len(kept[0]) + "|", *text[1:]]
