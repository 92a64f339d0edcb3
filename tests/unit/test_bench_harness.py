"""The statistics that decide whether a benchmark reaches its bar."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import (
    OURS,
    Bar,
    Contender,
    Contest,
    Limit,
    Line,
    Row,
    Timed,
    compare,
    faster,
    measure,
    ratios,
    run_rounds,
    within,
)
from benchmarks.tables import aligned, counted, page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def clock(*seconds: float) -> Callable[[], Timed]:
    """Make a contender that says it took these times, one after another."""
    left = list(seconds)
    return lambda: Timed(left.pop(0))


def contest(ours: Contender | str, peer: Contender | str) -> Callable[[Path], Contest]:
    return lambda _: Contest(ours, {"peer": peer})


def judged(bar: Bar, ours: Sequence[float], theirs: Sequence[float]) -> Line:
    able = {OURS: Contender(clock()), "peer": Contender(clock())}
    row = Row("row", 1, (bar,), contest("", ""))
    return compare(row, bar, able, {OURS: ours, "peer": theirs})


def test_faster_asks_how_many_times_as_fast() -> None:
    assert ratios(faster("peer", 2), [1, 2, 4], [4, 4, 4]) == (2, 4)


def test_within_asks_how_many_times_as_long() -> None:
    assert ratios(within("peer", 2), [1, 2, 6], [2, 2, 2]) == (1, 0.5)


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([1, 1, 1], [2, 2, 2], "pass"),
        ([1, 1, 1], [1.99, 1.99, 1.99], "fail"),
        ([1, 2, 2], [2, 2, 2], "fail"),  # one lucky round: the median is 1
        ([1, 1, 1], [9, 9, 1.5], "fail"),  # a busy machine: the peer's least is 1.5
    ],
)
def test_both_ratios_have_to_reach_a_bar(
    ours: list[float], theirs: list[float], verdict: str
) -> None:
    assert judged(faster("peer", 2), ours, theirs).verdict == verdict


def test_at_most_holds_at_its_end() -> None:
    assert judged(within("peer", 1.5), [3, 3], [2, 2]).verdict == "pass"
    assert judged(within("peer", 1.5), [3.1, 3.1], [2, 2]).verdict == "fail"


def test_a_ratio_that_is_only_told_has_no_verdict() -> None:
    line = judged(faster("peer"), [5, 5], [1, 1])
    assert (line.verdict, line.asked, line.median_ratio) == ("", "", 0.2)


def test_every_round_runs_each_contender_once_in_turns() -> None:
    order: list[str] = []
    contenders = {name: Contender(partial(order.append, name)) for name in "abc"}
    seconds = run_rounds(contenders, 3, warm=True)
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"
    assert [len(each) for each in seconds.values()] == [3, 3, 3]


def test_a_part_of_the_work_is_scaled_up() -> None:
    part = Contender(clock(1, 2), scale=10)
    assert run_rounds({"part": part}, 2, warm=False) == {"part": [10, 20]}


def test_a_function_without_a_clock_is_timed() -> None:
    seconds = run_rounds({"nap": Contender(lambda: time.sleep(0.002))}, 1, warm=False)
    assert seconds["nap"][0] >= 0.002


def test_who_cannot_take_part() -> None:
    bars = (faster("peer", 2), faster("peer"))
    able = Contender(clock(1, 1, 1))
    absent = measure(Row("row", 1, bars, contest(able, "not installed"), rounds=2))
    assert [line.verdict for line in absent] == ["not available"] * 2
    unbuilt = measure(Row("row", 1, bars, contest("not built", "not run")))
    assert [line.verdict for line in unbuilt] == ["fail", "not available"]
    assert unbuilt[0].note == "not built"


def test_limits_are_judged_after_the_rounds() -> None:
    peaks: list[int] = []

    def setup(folder: Path) -> Contest:
        assert list(folder.iterdir()) == []
        able = Contender(lambda: peaks.append(7))
        return Contest(able, {}, lambda: [Limit("n", len(peaks), 3), Limit("", 4, 3)])

    lines = measure(Row("row", 1, (), setup, rounds=2))
    assert [(line.ours, line.verdict) for line in lines] == [(3, "pass"), (4, "fail")]


def test_what_is_not_a_number_is_over_its_limit() -> None:
    limit = Limit("error", float("nan"), 1)
    row = Row("row", 1, (), lambda _: Contest("", {}, lambda: [limit]))
    assert measure(row)[0].verdict == "fail"


def test_the_page_has_every_line_and_counts_them() -> None:
    lines = [
        judged(faster("peer", 2), [1, 1], [2, 2]),
        judged(faster("peer", 3), [1, 1], [2, 2]),
    ]
    assert counted(lines) == "1 of 2 reached"
    text = page(lines, {"processor": "made up"}, "2000-01-01")
    assert text.count("| row | peer | 1.00 s | 2.00 s | 2.00 | 2.00 |") == 2
    assert "| processor | made up |" in text
    assert len({len(row) for row in aligned(lines).splitlines()[1:]}) == 1


def test_every_row_of_the_benchmarks_has_a_name_of_its_own() -> None:
    from benchmarks.__main__ import FILES, rows_of

    rows = [row for file in FILES for row in rows_of(file, "")]
    assert len({row.name for row in rows}) == len(rows)
    assert {row.bar for row in rows} == set(range(11))


def test_all_rows_are_run_by_some_process() -> None:
    from benchmarks.__main__ import FILES, groups, rows_of

    found = [(file, at) for file, _, numbers in groups("") for at in numbers]
    rows = [(file, at) for file in FILES for at in range(len(rows_of(file, "")))]
    assert sorted(found) == sorted(rows)


def test_peak_memory_is_the_childs_own() -> None:
    from benchmarks.processes import Peak

    held = bytearray(200_000_000)
    small, large = Peak(("-c", "1")), Peak(("-c", "bytearray(b'x') * 150_000_000"))
    small()
    large()
    del held
    assert small.megabytes < 100
    assert large.megabytes > 150


def test_a_command_that_fails_is_told() -> None:
    from benchmarks.processes import run_python

    with pytest.raises(RuntimeError, match="ended with 3: why"):
        run_python(("-c", "print('why'); raise SystemExit(3)"))
