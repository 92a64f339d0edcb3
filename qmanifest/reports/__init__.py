"""Reports as text: one file per format, every writer in `WRITERS`.

To add a format, write a file with a function from reports to text, and add it here.
Writers load on first use, since a run has use for one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.reports.github import write_github
    from qmanifest.reports.json_form import write_json
    from qmanifest.reports.places import Reports
    from qmanifest.reports.sarif import write_sarif
    from qmanifest.reports.text import write_text

    WRITERS: dict[str, Callable[[Reports], str]]
    """Writer by format; each takes one report or a sequence of them."""

__all__ = ["WRITERS", "write_github", "write_json", "write_sarif", "write_text"]

_FORMATS: Final = {
    "text": ("qmanifest.reports.text", "write_text"),
    "json": ("qmanifest.reports.json_form", "write_json"),
    "sarif": ("qmanifest.reports.sarif", "write_sarif"),
    "github": ("qmanifest.reports.github", "write_github"),
}
_HOME: Final = {name: module for module, name in _FORMATS.values()}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name is of
    """Load a writer, or all of them, on first use."""
    if name == "WRITERS":
        return {form: __getattr__(writer) for form, (_, writer) in _FORMATS.items()}
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
