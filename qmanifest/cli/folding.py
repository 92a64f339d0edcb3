"""The lists of a config folded: the fewest patterns that match the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qmanifest.cli.console import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.cli.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Fold:
    """One list of a config, or those of its entries that share a scheme."""

    place: str
    scheme: str | None
    names: int
    patterns: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Give everything as JSON."""
        return {
            "list": self.place,
            "scheme": self.scheme,
            "names": self.names,
            "patterns": list(self.patterns),
        }

    def as_text(self) -> Iterator[str]:
        """Write it as lines for people."""
        scheme = f" {self.scheme}" if self.scheme else ""
        patterns = counted(len(self.patterns), "pattern")
        yield f"{self.place}{scheme}: {counted(self.names, 'name')}, {patterns}"
        for pattern in self.patterns:
            yield f"  {pattern!r}"


def folds_of(ledger: Ledger) -> list[Fold]:
    """Fold every list of a ledger, so that no other of its names is matched."""
    from qmanifest.patterns import fold

    lists: dict[tuple[str, str | None], dict[str, None]] = {}
    for line in ledger.lines:
        place = line.place.rpartition("/")[0] or line.place
        names = lists.setdefault((place, line.scheme), {})
        names.update(dict.fromkeys(line.matches))
    # What keeps by substrings has no names here, and must not be matched either.
    universe = [*ledger.names, *(e.full.text for e in ledger.lines if not e.matches)]
    title = f"{ledger.component}: " if ledger.component else ""
    return [
        Fold(
            f"{title}{place}",
            scheme,
            len(names),
            fold(names, universe),
        )
        for (place, scheme), names in lists.items()
        if names
    ]
