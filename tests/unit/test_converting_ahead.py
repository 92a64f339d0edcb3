"""Work done ahead: in order, within its bytes, and nothing left when it ends."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, NoReturn

import pytest

from qmanifest.converting import ahead
from qmanifest.converting.ahead import Scratch, Work, cut_rows, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def no_thread_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("QMANIFEST_THREADS", "2")
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def spans(count: int) -> list[slice]:
    return [slice(number, number + 1) for number in range(count)]


def work(make: Callable[[int], int], count: int, nbytes: int = 1) -> Work[int]:
    return Work(lambda block: make(block.start), spans(count), nbytes)


def test_blocks_come_in_order_however_long_each_takes() -> None:
    later = threading.Event()

    def first_waits(number: int) -> int:
        if number == 0:
            assert later.wait(timeout=60)
        else:
            later.set()
        return number

    works = [work(first_waits, 5), work(lambda n: -n, 0), work(lambda n: 10 + n, 2)]
    assert list(in_order(works)) == [0, 1, 2, 3, 4, 10, 11]


def test_two_threads_and_none_of_them_the_callers() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(_: int) -> int:
        both.wait()
        return threading.get_ident()

    names = set(in_order([work(meet, 4)]))
    assert len(names) == 2
    assert threading.get_ident() not in names


@pytest.mark.parametrize(("nbytes", "limit", "most"), [(10, 30, 3), (10, 5, 1)])
def test_bytes_in_flight_are_bounded(nbytes: int, limit: int, most: int) -> None:
    lock, held, peak = threading.Lock(), 0, 0

    def make(number: int) -> int:
        nonlocal held, peak
        with lock:
            held += 1
            peak = max(peak, held)
        return number

    for _ in in_order([work(make, 50, nbytes)], limit):
        with lock:
            held -= 1
    assert peak <= most
    assert held == 0


@pytest.mark.parametrize("error", [ValueError, MemoryError, KeyboardInterrupt])
def test_errors_are_raised_when_their_turn_comes(error: type[BaseException]) -> None:
    raised = error("the very one")

    def fails(number: int) -> int:
        if number == 2:
            raise raised
        return number

    done = in_order([work(fails, 9)])
    assert [next(done), next(done)] == [0, 1]
    with pytest.raises(error) as caught:
        next(done)
    assert caught.value is raised


def test_closing_drops_what_has_not_begun() -> None:
    made: list[int] = []
    gate = threading.Event()

    def make(number: int) -> int:
        if number:
            assert gate.wait(timeout=60)
        made.append(number)
        return number

    with closing(in_order([work(make, 1000)], in_flight=4)) as done:
        assert next(done) == 0
        gate.set()
    assert len(made) <= 5


def test_interrupted_caller_leaves_no_thread() -> None:
    def interrupted() -> NoReturn:
        with closing(in_order([work(lambda n: n, 1000)])) as done:
            next(done)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_nothing_to_do() -> None:
    assert list(in_order([])) == []


@pytest.mark.parametrize(
    ("shape", "row_bytes", "within", "blocks"),
    [
        ((5, 8), 4, 1, [(0, 2), (2, 4), (4, 5)]),
        ((2, 3, 8), 4, 1, [(0, 2), (2, 4), (4, 6)]),
        ((2, 3, 8), 4, 2, [(0, 2), (2, 3), (3, 5), (5, 6)]),
        ((2, 8), 99, 1, [(0, 1), (1, 2)]),
        ((0, 8), 4, 1, []),
        ((4, 0), 0, 1, [(0, 4)]),
    ],
)
def test_rows_are_cut_into_whole_blocks(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    row_bytes: int,
    within: int,
    blocks: list[tuple[int, int]],
) -> None:
    monkeypatch.setattr(ahead, "BLOCK", 8)
    found = cut_rows(shape, row_bytes, within)
    assert [(each.start, each.stop) for each in found] == blocks


def test_scratch_is_one_buffer_per_thread_and_purpose() -> None:
    scratch = Scratch()
    first = scratch.buffer("a", 10)
    assert scratch.buffer("a", 5) is first
    assert scratch.buffer("b", 10) is not first
    assert len(scratch.buffer("a", 20)) == 20
    others: list[bytearray] = []
    thread = threading.Thread(target=lambda: others.append(scratch.buffer("b", 1)))
    thread.start()
    thread.join()
    assert others[0] is not scratch.buffer("b", 1)
