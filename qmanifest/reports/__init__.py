"""Reports as text: one file per format, every writer in `WRITERS`.

To add a format, write a file with a function from reports to text, and add it here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.reports.github import write_github
from qmanifest.reports.json_form import write_json
from qmanifest.reports.sarif import write_sarif
from qmanifest.reports.text import write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.reports.places import Reports

__all__ = ["WRITERS", "write_github", "write_json", "write_sarif", "write_text"]

WRITERS: Final[dict[str, Callable[[Reports], str]]] = {
    "text": write_text,
    "json": write_json,
    "sarif": write_sarif,
    "github": write_github,
}
"""Writer by format; each takes one report or a sequence of them."""
