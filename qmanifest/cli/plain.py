"""Plain command lines of `validate`, read without typer, which starts slowly.

It says nothing by itself. Whatever is not plain (help, a misspelling, an option twice,
a value that may be an option) is left to typer, which knows it all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from qmanifest.cli.values import FailOn, Format

FLAGS: Final = {"--deep": "deep", "--full": "full"}
LISTS: Final = {"--component": "component", "--select": "select", "--ignore": "ignore"}
VALUES: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "--config": ("config", Path),
    "--config-only": ("config_only", Path),
    "--base": ("base", Path),
    "--dialect": ("dialect", str),
    "--format": ("report_format", Format),
    "--fail-on": ("fail_on", FailOn),
    "--output": ("output", Path),
    "-o": ("output", Path),
}


def read_plain(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Read the arguments of `validating.run`; None where typer has to read them.

    >>> read_plain(["validate", "model", "--deep"])
    {'paths': [PosixPath('model')], 'deep': True}
    """
    if arguments[:1] != ["validate"] or not "".join(arguments).isprintable():
        return None
    found: dict[str, Any] = {}
    waiting = iter(arguments[1:])
    for word in waiting:
        name, equals, value = word.partition("=")
        if not word.startswith("-") and word:
            found.setdefault("paths", []).append(Path(word))
        elif word in FLAGS:
            found[FLAGS[word]] = True
        else:
            value = value if equals and name.startswith("--") else next(waiting, "")
            if not (value and _take(name, value, found)):
                return None
    return found


def _take(name: str, value: str, found: dict[str, Any]) -> bool:
    """Add an option and its value to what was found; False where that is not plain."""
    if value.startswith("-"):
        return False
    if name in LISTS:
        found.setdefault(LISTS[name], []).append(value)
        return True
    key, read = VALUES.get(name, ("", str))
    if not key or key in found:
        return False
    try:
        found[key] = read(value)
    except ValueError:
        return False
    return True
