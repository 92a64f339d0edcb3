"""Tensor names that are too long, empty, or have invisible characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import (
    Defect,
    DefectKind,
    Location,
    Problem,
    Severity,
    json_pointer,
)
from qmanifest.reading import limits
from qmanifest.reading.capped import capped
from qmanifest.reading.wording import character, quoted

if TYPE_CHECKING:
    from collections.abc import Collection

_UTF8_BYTES = 4
"""Most bytes that one character takes."""


def entry_location(file: str, name: str, *parts: str) -> Location:
    """Point to a tensor's entry in a header; to the file where the name is too long."""
    if len(name) > limits.MAX_NAME:
        return Location(file=file)
    return Location(file=file, pointer=json_pointer(name, *parts), tensor=name)


def long_names(names: Collection[str], file: str) -> tuple[Defect, ...]:
    """Refuse names over the limit."""
    longest = max(map(len, names), default=0)
    if longest * _UTF8_BYTES <= limits.MAX_NAME:
        return ()
    sizes = {name: len(name.encode()) for name in names}
    over = {name: size for name, size in sizes.items() if size > limits.MAX_NAME}
    return capped(
        (_too_long(name, size, file) for name, size in over.items()), len(over)
    )


def odd_names(names: Collection[str], file: str) -> tuple[Defect, ...]:
    """Warn of names that people cannot tell apart or that steer a terminal."""
    # One look at all of the text, since almost every checkpoint has none.
    if "".join(names).isprintable() and "" not in names:
        return ()
    odd = [name for name in names if not name or not name.isprintable()]
    return capped((_odd(name, file) for name in odd), len(odd))


def _too_long(name: str, size: int, file: str) -> Defect:
    return Defect(
        DefectKind.BAD_ENTRY,
        Problem(
            f"tensor {quoted(name)}: its name has {size:,} bytes; "
            f"at most {limits.MAX_NAME:,} are read",
            (entry_location(file, name),),
            expected=limits.MAX_NAME,
            actual=size,
            hint="give the tensor a shorter name",
        ),
    )


def _odd(name: str, file: str) -> Defect:
    hidden = dict.fromkeys(char for char in name if not char.isprintable())
    what = ", ".join(character(char) for char in list(hidden)[:3])
    message = f"tensor {quoted(name)}: its name has {what}" if name else ""
    return Defect(
        DefectKind.BAD_ENTRY,
        Problem(
            message or "a tensor has the empty name",
            (entry_location(file, name),),
            hint="rename the tensor with visible characters",
            severity=Severity.WARNING,
        ),
    )
