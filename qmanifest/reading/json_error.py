"""What is wrong with a JSON text, and at which character."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmanifest.findings import DefectKind


class JsonError(Exception):
    """A JSON text is refused; the readers turn it into a defect of their file."""

    def __init__(
        self,
        kind: DefectKind,
        message: str,
        hint: str,
        offset: int = 0,
        *,
        pointer: str | None = None,
        related: int | None = None,
    ) -> None:
        self.kind = kind
        self.message = message
        self.hint = hint
        self.offset = offset
        """Characters before the place that is at fault."""
        self.pointer = pointer
        self.related = related
        """Offset of another place that the fault is about."""
        self.byte: int | None = None
        """Byte that is at fault, where the text cannot be decoded."""
        super().__init__(message)


class LoneSurrogateError(JsonError):
    """A string escapes half of a character: no reader can write it as UTF-8."""
