"""Where a finding is: paths from the working folder, and one short text for people."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.reports.printable import printable
from qmanifest.reports.shorten import shorten

if TYPE_CHECKING:
    from qmanifest.check import Report
    from qmanifest.findings import Finding, Location

Reports: TypeAlias = "Report | Sequence[Report]"
"""What every writer takes: one report, or one for each path that was checked."""

_LONGEST: Final = 160
"""Characters of a place on a screen."""


def as_reports(reports: Reports) -> tuple[Report, ...]:
    """Give one report or several as several."""
    return tuple(reports) if isinstance(reports, Sequence) else (reports,)


def below(root: str, file: str) -> str:
    """Give a checkpoint's file as a path from where `root` is one, with `/`.

    >>> below(".", "a.json"), below("ckpt/", "../q.json")
    ('a.json', 'q.json')
    """
    return posixpath.normpath(posixpath.join(root.replace("\\", "/") or ".", file))


def from_here(root: str) -> str:
    """Give a checkpoint's path from the working folder, where it lies in that.

    Code hosts know files by their path in the repository, which is worked in.
    """
    try:
        return Path(root).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return root


def shown(finding: Finding, root: str = "") -> str:
    """Show where a finding is: `quant_config.json:12:5 #/emb_q4/1`.

    Args:
        finding: its first location counts.
        root: put before the file; empty leaves the path relative to the checkpoint.

    """
    if not finding.at:
        return printable(root) or "checkpoint"
    return shown_location(finding.at[0], root)


def shown_location(at: Location, root: str = "") -> str:
    """Show one location, as much of it as is known."""
    file = at.file if at.file is not None else "checkpoint"
    text = below(root, file) if root else file
    if at.line is not None:
        text += f":{at.line}" + (f":{at.column}" if at.column is not None else "")
    if at.byte_range is not None:
        text += f" bytes {at.byte_range[0]}-{at.byte_range[1]}"
    if at.pointer:
        text += f" #{at.pointer}"
    if text.startswith((":", "#")):  # runners of CI read commands at a line's start
        text = f"./{text}"
    return shorten(printable(text), _LONGEST)
