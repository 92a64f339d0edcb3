"""The values of options: how they are read, and what is said of a wrong one.

Nothing here needs typer, so that a plain command line can do without it.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qmanifest.errors import QManifestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FEW: Final = 10
"""Names that are listed where one of them was meant."""


class UsageError(QManifestError):
    """The command line asks for something that cannot be done; says what would."""


class Listing(StrEnum):
    """How a command shows what it found."""

    TEXT = "text"
    JSON = "json"


class Format(StrEnum):
    """Who reads the report."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


class FailOn(StrEnum):
    """What makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


def require(*paths: Path | None) -> None:
    """Check that paths are there, whatever they are.

    Raises:
        UsageError: one is not.

    """
    for path in paths:
        if path is None:
            continue
        try:
            path.lstat()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{str(path)!r}: {reason}. Check the path.") from error


def listed(values: Iterable[str] | None) -> tuple[str, ...]:
    """Split repeated, comma-separated values."""
    split = (part.strip() for value in values or () for part in value.split(","))
    return tuple(part for part in split if part)


def placed(values: Iterable[str] | None) -> dict[str, Path]:
    """Read `NAME=PATH` values.

    Raises:
        UsageError: one has no `=`, a name is given twice, or a path is not there.

    """
    components: dict[str, Path] = {}
    for value in values or ():
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            raise UsageError(f"--component {value!r} is not NAME=PATH. Give both.")
        if name in components:
            raise UsageError(f"--component {name!r} is given twice. Give each once.")
        components[name] = Path(path)
    require(*components.values())
    return components


def chosen(value: str, known: Sequence[str], what: str) -> str:
    """Check a value against those that there are.

    Raises:
        UsageError: it is not one of them.

    """
    if value in known:
        return value
    from difflib import get_close_matches

    near = get_close_matches(value, known, 1)
    few = len(known) <= _FEW
    there = f"there are {', '.join(known)}" if few else "check its name"
    meant = f"did you mean {near[0]!r}?" if near else f"{there}."
    raise UsageError(f"no {what} is called {value!r}; {meant}")


def dialect_id(value: str | None) -> str | None:
    """Check a dialect's id.

    Raises:
        UsageError: there is no such dialect.

    """
    if value is None:
        return None
    from qmanifest.dialects import IDS

    return chosen(value, list(IDS), "dialect")


_SIZE: Final = r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([KMGT]I?)?B?"


def size_in_bytes(text: str) -> int:
    """Read a size: `5GB`, `500 MB`, `1.5GiB`, or plain bytes.

    Raises:
        UsageError: the text is no size, or less than a byte.

    """
    match = re.fullmatch(_SIZE, text.strip().upper())
    size = 0
    if match is not None:
        prefix = match[2] or " "
        base = 1024 if prefix.endswith("I") else 1000
        size = int(float(match[1]) * base ** " KMGT".index(prefix[0]))
    if size < 1:
        raise UsageError(f"{text!r} is no size. Write it as 5GB, 500MB or 2GiB.")
    return size
