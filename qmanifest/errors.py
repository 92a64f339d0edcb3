"""Exceptions: raised when a caller's request cannot be met, never reported as findings.

Each carries its data as attributes, and its message ends with the way out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.findings import Defect


class QManifestError(Exception):
    """Base of every exception that qmanifest raises on purpose."""


class UnknownDialectError(QManifestError):
    """The dialect that a caller named is none of the registered ones."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(
            f"there is no dialect {name!r}. Name one of {', '.join(known)}."
        )

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...]]]:
        """Pickle by arguments, since `args` holds the message alone."""
        return type(self), (self.name, self.known)


class InvalidConfigError(QManifestError):
    """A config document breaks its dialect; `defects` has every problem at once."""

    def __init__(self, dialect: str, defects: Sequence[Defect]) -> None:
        self.dialect = dialect
        self.defects = tuple(defects)
        lines = "".join(f"\n  {_line(defect)}" for defect in self.defects)
        super().__init__(f"not a valid {dialect} config:{lines}")

    def __reduce__(self) -> tuple[type, tuple[str, tuple[Defect, ...]]]:
        """Pickle by arguments, since `args` holds the message alone."""
        return type(self), (self.dialect, self.defects)


class InvalidCheckpointError(QManifestError):
    """`assert_valid` found errors; `messages` has one line for each."""

    def __init__(self, path: str, messages: Sequence[str]) -> None:
        self.path = path
        self.messages = tuple(messages)
        lines = "".join(f"\n  {message}" for message in self.messages)
        super().__init__(f"{path} is not what its config says:{lines}")

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...]]]:
        """Pickle by arguments, since `args` holds the message alone."""
        return type(self), (self.path, self.messages)


class PatternError(QManifestError):
    """A pattern cannot be used: bad syntax, outside the safe subset, or too large."""


class LayoutError(QManifestError):
    """A shape does not fit a packing: the row is not a whole number of words."""


class PackingError(QManifestError):
    """Codes or words do not fit a packing."""


class WriteError(QManifestError):
    """A checkpoint cannot be written as asked."""


class EmitError(QManifestError):
    """A dialect has no words for something in the manifest."""


class BackendError(QManifestError):
    """A backend cannot load or compute what was asked."""


def _line(defect: Defect) -> str:
    """Show a defect as `file#/pointer: message`."""
    place = defect.problem.at[0] if defect.problem.at else None
    if place is None:
        return defect.problem.message
    return f"{place.file or ''}#{place.pointer or ''}: {defect.problem.message}"
