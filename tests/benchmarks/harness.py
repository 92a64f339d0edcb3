"""Time contenders against each other, in rounds, in one process.

Absolute times move two- or threefold with whatever else a machine does, so that every
bar is a ratio of two times of one run. In each round every contender runs once, in an
order that rotates. A bar is reached where both the median of the rounds' ratios and
the ratio of the least times reach it.

To add a row, write a `Row` in one of the `rows_*.py`; a new such file is listed in
`__main__.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, Literal, TypeAlias

OURS: Final = "ours"
ENOUGH_SECONDS: Final = 20.0
"""A row stops after the round that ends later, and after its second at the earliest."""
LEAST_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True)
class Timed:
    """What a contender returns that is its own clock: a process, for instance."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the work of a row."""

    run: Callable[[], object]
    scale: float = 1.0
    """What its time is multiplied with, where it does only a part of the work."""
    error: float | None = None
    """Its largest error against float64, relative to the largest true result."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What our time has to be beside a peer's."""

    peer: str
    factor: float | None
    """None where nothing is asked and the ratio is told all the same."""
    kind: Literal["faster", "within"]

    def ratio(self, ours: float, peer: float) -> float:
        """How often our time fits the peer's, or the peer's ours with `within`."""
        return peer / ours if self.kind == "faster" else ours / peer

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is good enough."""
        if self.factor is None:
            return True
        return ratio >= self.factor if self.kind == "faster" else ratio <= self.factor

    def __str__(self) -> str:
        """Print what is asked."""
        if self.factor is None:
            return ""
        return f"{'≥' if self.kind == 'faster' else '≤'} {self.factor:g}"


def faster(peer: str, factor: float | None = None) -> Bar:
    """Ask that ours is at least `factor` times as fast as the peer."""
    return Bar(peer, factor, "faster")


def within(peer: str, factor: float | None = None) -> Bar:
    """Ask that ours takes at most `factor` times as long as the peer."""
    return Bar(peer, factor, "within")


@dataclass(frozen=True, slots=True)
class Limit:
    """A number that is no ratio of times, and the most it may be."""

    what: str
    value: float
    most: float


def no_limits() -> Iterable[Limit]:
    """Give what a contest without limits has."""
    return ()


@dataclass(frozen=True, slots=True)
class Contest:
    """What takes part in a row. A text stands for who cannot, and says why."""

    ours: Contender | str
    peers: Mapping[str, Contender | str]
    limits: Callable[[], Iterable[Limit]] = no_limits
    """Asked for after all rounds."""


Setup: TypeAlias = Callable[[Path], Contest]
"""Builds the contest; the folder is empty and goes away after the row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of work, and the bars that hold for it."""

    name: str
    bar: int
    """Number of the bar in `docs/decisions/0006-how-speed-is-measured.md`; 0: none."""
    bars: Sequence[Bar]
    setup: Setup
    threads: int = 1
    rounds: int = 5
    warm: bool = True
    """Whether every contender runs once before the rounds."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a row beside one peer, or one of its limits."""

    row: str
    bar: int
    threads: int
    peer: str
    asked: str
    """The bar in words; empty where nothing is asked."""
    verdict: Literal["pass", "fail", "not available", ""]
    ours: float | None = None
    """Our median time in seconds, or the value of a limit."""
    theirs: float | None = None
    median_ratio: float | None = None
    ratio_of_least: float | None = None
    our_error: float | None = None
    their_error: float | None = None
    note: str = ""


def measure(row: Row) -> list[Line]:
    """Run a row; every bar and every limit becomes a line."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        contest = row.setup(folder)
        contenders = {OURS: contest.ours, **contest.peers}
        able = {k: v for k, v in contenders.items() if isinstance(v, Contender)}
        seconds = run_rounds(able, row.rounds, warm=row.warm)
        lines = [compare(row, bar, contenders, seconds) for bar in row.bars]
        return lines + [_limit_line(row, limit) for limit in contest.limits()]


def run_rounds(
    contenders: Mapping[str, Contender], rounds: int, *, warm: bool
) -> dict[str, list[float]]:
    """Run every contender once per round; give their seconds by name."""
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for name in names if warm else ():
        _time(contenders[name])
    began = perf_counter()
    for number in range(rounds):
        if number >= LEAST_ROUNDS and perf_counter() - began > ENOUGH_SECONDS:
            break
        turn = number % len(names) if names else 0
        for name in names[turn:] + names[:turn]:
            seconds[name].append(_time(contenders[name]))
    return seconds


def _time(contender: Contender) -> float:
    """Run a contender once, after what others left behind is collected."""
    gc.collect()
    began = perf_counter()
    result = contender.run()
    elapsed = perf_counter() - began
    return contender.scale * (result.seconds if isinstance(result, Timed) else elapsed)


def compare(
    row: Row,
    bar: Bar,
    contenders: Mapping[str, Contender | str],
    seconds: Mapping[str, Sequence[float]],
) -> Line:
    """Judge one bar by the seconds of ours and of its peer."""
    about = (row.name, row.bar, row.threads, bar.peer, str(bar))
    for name in (OURS, bar.peer):
        who = contenders[name]
        if isinstance(who, str):  # what we cannot do reaches no bar
            verdict = "fail" if name == OURS and bar.factor else "not available"
            return Line(*about, verdict, note=who)  # type: ignore[arg-type] # literals
    ours, theirs = seconds[OURS], seconds[bar.peer]
    middle, least = ratios(bar, ours, theirs)
    reached = bar.holds(middle) and bar.holds(least)
    return Line(
        *about,
        ("pass" if reached else "fail") if bar.factor is not None else "",
        median(ours),
        median(theirs),
        middle,
        least,
        _error(contenders[OURS]),
        _error(contenders[bar.peer]),
    )


def _error(who: Contender | str) -> float | None:
    return who.error if isinstance(who, Contender) else None


def ratios(
    bar: Bar, ours: Sequence[float], theirs: Sequence[float]
) -> tuple[float, float]:
    """Give the median of the rounds' ratios, and the ratio of the least times."""
    each = [bar.ratio(one, other) for one, other in zip(ours, theirs, strict=True)]
    return median(each), bar.ratio(min(ours), min(theirs))


def _limit_line(row: Row, limit: Limit) -> Line:
    """Judge a limit; what is not a number is over it."""
    return Line(
        row.name,
        row.bar,
        row.threads,
        limit.what,
        f"≤ {limit.most:g}",
        "pass" if limit.value <= limit.most else "fail",
        limit.value,
        note="limit",
    )
