"""The ledger of `match`: what every entry claims, and what no entry claims."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from qmanifest.cli.console import counted
from qmanifest.cli.names import holds_tensors, read_names
from qmanifest.cli.opening import manifest_of, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from qmanifest.manifest import Component
    from qmanifest.patterns import Pattern, Suggester

_SHOWN: Final = 3
"""Names that a line shows of those that an entry matches."""


@dataclass(frozen=True, slots=True)
class Line:
    """One entry, and what became of it."""

    place: str
    """JSON Pointer into the config; for patterns of the command line their number."""
    purpose: str
    pattern: Pattern
    appended: str = ""
    """What is added to the text to name a tensor."""
    scheme: str | None = None
    """How what it matches is quantized."""
    matches: tuple[str, ...] = ()
    problem: str | None = None
    """Why the pattern cannot be used."""
    nearest: str | None = None
    """The name spelled most like it, where it matches nothing."""
    change: str | None = None
    """The change of prefix or suffix that would make it match."""

    @property
    def full(self) -> Pattern:
        """The pattern of the tensor's name."""
        return replace(self.pattern, text=self.pattern.text + self.appended)

    def as_json(self) -> dict[str, Any]:
        """Give everything as JSON."""
        return {
            "entry": self.place,
            "purpose": self.purpose,
            "syntax": self.pattern.syntax.value,
            "text": self.pattern.text,
            "scheme": self.scheme,
            "matches": list(self.matches),
            "problem": self.problem,
            "nearest": self.nearest,
            "change": self.change,
        }


@dataclass(frozen=True, slots=True)
class Ledger:
    """The entries of one component against its names."""

    component: str
    names: tuple[str, ...]
    lines: tuple[Line, ...]
    contested: dict[str, tuple[str, ...]]
    """Places of the entries that claim a name, where several do."""

    @property
    def dead(self) -> int:
        """How many entries match nothing."""
        return sum(not line.matches for line in self.lines)

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """The names that no entry claims."""
        claimed = {name for line in self.lines for name in line.matches}
        return tuple(name for name in self.names if name not in claimed)

    def as_json(self) -> dict[str, Any]:
        """Give everything as JSON."""
        return {
            "component": self.component,
            "names": len(self.names),
            "entries": [line.as_json() for line in self.lines],
            "contested": {name: list(at) for name, at in self.contested.items()},
            "unclaimed": list(self.unclaimed),
        }


def ledger_of(component: str, lines: Sequence[Line], names: tuple[str, ...]) -> Ledger:
    """Match entries with the names of a component."""
    from qmanifest.patterns import Suggester, match

    appended = [line.appended for line in lines]
    matches = match([line.pattern for line in lines], names, appended)
    suggester = Suggester(names)
    matched = tuple(
        replace(line, matches=found) if found else _suggested(line, suggester)
        for line, found in ((each, matches.of(n)) for n, each in enumerate(lines))
    )
    contested = {
        name: tuple(lines[number].place for number in matches.claims(name))
        for name in matches.contested
    }
    return Ledger(component, names, matched, contested)


def ledgers_of_config(config: Path, names: Path | None) -> list[Ledger]:
    """Match every entry of a config, by component.

    Args:
        config: the config.
        names: where names are; None takes those that the config itself spells out.

    """
    if names is not None and holds_tensors(names):
        checkpoint = opened(names, config)
        manifest_of(checkpoint)  # says why if there is none
        return [
            ledger_of(component.name, _lines(component), store.evidence.logical)
            for component, store in checkpoint.found()
        ]
    components = manifest_of(opened(None, config)).components
    listed = None if names is None else read_names(names)
    return [
        ledger_of(each.name, _lines(each), listed or _spelled_out(each))
        for each in components
    ]


def _lines(component: Component) -> list[Line]:
    """List a component's entries."""
    schemes = {weight.pointer: str(weight.scheme) for weight in component.weights}
    return [
        Line(
            f"#{entry.pointer}",
            entry.purpose,
            entry.pattern,
            entry.appended,
            schemes.get(entry.pointer),
        )
        for entry in component.entries
    ]


def _spelled_out(component: Component) -> tuple[str, ...]:
    """Collect the names that a component's entries stand for by themselves."""
    names = [name for entry in component.entries for name in entry.matches]
    return tuple(dict.fromkeys([*names, *(each.name for each in component.weights)]))


def _suggested(line: Line, suggester: Suggester) -> Line:
    """Say of an entry that matches nothing what it may have meant."""
    from qmanifest.patterns import check

    problem = check(line.full)
    if problem is not None:
        return replace(line, problem=problem)
    change = suggester.near(line.full)
    if change is None:
        return replace(line, nearest=suggester.nearest(line.full.text))
    what = f"{change.kind} {change.old!r} replaced by {change.new!r}"
    return replace(line, nearest=change.example, change=what)


def text_of(ledger: Ledger) -> Iterator[str]:
    """Write a ledger as lines for people."""
    start = f"{ledger.component}: " if ledger.component else ""
    for line in ledger.lines:
        entry = f"{line.purpose} {line.pattern.syntax.value} {line.pattern.text!r}"
        yield f"{start}{line.place} {entry}: {_fate(line)}"
    for name, places in ledger.contested.items():
        yield f"{start}contested: {name!r} by {', '.join(places)}"
    yield (
        f"{start}{counted(len(ledger.lines), 'entry')}, {ledger.dead:,} matching "
        f"nothing; {counted(len(ledger.names), 'name')}, {len(ledger.contested):,} "
        f"contested, {len(ledger.unclaimed):,} claimed by no entry"
    )


def _fate(line: Line) -> str:
    """Say what one entry matched, or what it may have meant."""
    if line.problem is not None:
        return f"cannot be used: {line.problem}"
    if not line.matches:
        near = f"; nearest: {line.nearest!r}" if line.nearest else ""
        return f"matches nothing{near}{f' ({line.change})' if line.change else ''}"
    if line.matches == (line.full.text,):
        return "found"
    first = ", ".join(map(repr, line.matches[:_SHOWN]))
    more = len(line.matches) - _SHOWN
    end = f" and {more:,} more" if more > 0 else ""
    return f"{counted(len(line.matches), 'name')}: {first}{end}"
