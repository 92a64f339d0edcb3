"""Documents of libraries that ignore keys which they do not know.

Writers of many versions leave keys behind, so a key that is not known is a note, and
a warning where it is nearly a known one: then a default is in force instead of it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from qmanifest.dialects.base import Document, few
from qmanifest.findings import DefectKind, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.findings import Defect


class TolerantDocument(Document):
    """A document that keeps the keys which it does not know."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    def unknown(self, place: Place) -> tuple[Defect, ...]:
        """Report the keys that no reader of the dialect knows."""
        return tuple(few(self._unknown(place)))

    def _unknown(self, place: Place) -> Iterator[Defect]:
        fields = type(self).model_fields.items()
        known = [field.alias or name for name, field in fields]
        for key in self.__pydantic_extra__:
            near = get_close_matches(key, [k for k in known if k != "$schema"], 1, 0.8)
            yield place.defect(
                DefectKind.UNKNOWN_KEY,
                f"unknown key {key!r}, which readers ignore",
                key,
                hint=f"did you mean {near[0]!r}?" if near else f"remove {key!r}",
                severity=Severity.WARNING if near else Severity.NOTE,
            )
