"""Lines and columns of findings, found from their JSON Pointers in one pass a file."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.reading.json_text import locate_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from qmanifest.check import Report
    from qmanifest.findings import Location

MAX_POINTERS: Final = 10_000
"""Places of one file that are looked up; what is beyond keeps its pointer alone."""
Places: TypeAlias = "Mapping[str, tuple[int, int]]"
"""Line and column by pointer."""


def resolve_lines(report: Report, texts: Mapping[str, str]) -> Report:
    """Give every location with a pointer its line and column.

    A pointer to something that is missing gets the place of what it is missing from.

    Args:
        report: as `check` made it.
        texts: text of the config and index files by name; others stay as they are.

    """
    wanted: dict[str, dict[str, None]] = {}
    for finding in report.findings:
        for at in finding.at:
            if _lacks_line(at) and texts.get(at.file or ""):
                wanted.setdefault(at.file or "", {})[at.pointer or ""] = None
    if not wanted:
        return report
    found = {file: _places(texts[file], pointers) for file, pointers in wanted.items()}
    findings = tuple(
        replace(finding, at=tuple(_placed(at, found) for at in finding.at))
        for finding in report.findings
    )
    return replace(report, findings=findings)


def _lacks_line(at: Location) -> bool:
    return at.pointer is not None and at.line is None


def _places(text: str, pointers: Iterable[str]) -> Places:
    """Look up pointers, as far down as there is something."""
    ways = {each: list(_way_to(each)) for each in islice(pointers, MAX_POINTERS)}
    found = locate_all(text, {step for way in ways.values() for step in way})
    places = {}
    for pointer, way in ways.items():
        there = [step for step in way if step in found]
        if there:
            places[pointer] = found[there[-1]]
    return places


def _way_to(pointer: str) -> Iterator[str]:
    """List the pointers from the document's top down to `pointer`."""
    return accumulate(pointer.split("/"), lambda way, part: f"{way}/{part}")


def _placed(at: Location, found: Mapping[str, Places]) -> Location:
    """Fill in a location's line and column, if they were found."""
    place = found.get(at.file or "", {}).get(at.pointer or "")
    if place is None or not _lacks_line(at):
        return at
    return replace(at, line=place[0], column=place[1])
