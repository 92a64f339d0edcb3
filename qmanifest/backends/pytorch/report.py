"""What `load_into` did: the fate of every name of the source and of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SHOWN: Final = 5
"""Names of each kind that a report shows as text."""


@dataclass(slots=True)
class LoadReport:
    """What became of every name of the source and of the model."""

    swapped: list[str] = field(default_factory=list)
    """Paths of the layers that are now quantized."""
    copied: list[str] = field(default_factory=list)
    """Parameters and buffers of the model that a dense tensor was copied to."""
    tied: dict[str, str] = field(default_factory=dict)
    """Names of the model that share the tensor given to another name, and that name."""
    missing: list[str] = field(default_factory=list)
    """Parameters and buffers of the model that got nothing."""
    unexpected: list[str] = field(default_factory=list)
    """Names of the source that have no place in the model."""
    mismatched: dict[str, str] = field(default_factory=dict)
    """Names of the source that do not fit their place, and why."""

    @property
    def complete(self) -> bool:
        """Whether everything found its place, and every place got something."""
        return not (self.missing or self.unexpected or self.mismatched)

    def __str__(self) -> str:
        """Count what was done, and show the first names that found no place."""
        parts = [f"{len(self.swapped)} layers swapped, {len(self.copied)} copied"]
        for kind in ("missing", "unexpected"):
            parts.extend(_some(kind, [repr(name) for name in getattr(self, kind)]))
        wrong = [f"{name!r} ({why})" for name, why in self.mismatched.items()]
        parts.extend(_some("mismatched", wrong))
        return "; ".join(parts)


def _some(kind: str, names: list[str]) -> list[str]:
    """Show how many names there are of a kind, and the first of them."""
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return [f"{len(names)} {kind}: {', '.join(names[:SHOWN])}{more}"]
