"""Two or more Python threads for the parts of one piece of work.

Kernels release the GIL, in numpy and compiled alike, so that plain threads run side by
side. Those of torch would do, but wait by spinning, and take the processor from whoever
else computes between two calls.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LEAST_PRODUCTS: Final = 1 << 22
"""Products that are worth waking a thread for: a fifth of a millisecond of work."""
Part = TypeVar("Part")
_WORTH_A_THREAD: Final = 1 << 19
"""Elements: an eighth of a millisecond of work, more than it takes to wake a thread."""
_CHUNKS_PER_THREAD: Final = 4
"""So that a thread that is held up leaves little to wait for."""
_MOST: Final = 64
_SELF: Final = threading.local()


def work_alone() -> None:
    """Have the calling thread start no others: it is one of several already."""
    _SELF.alone = True


def thread_count() -> int:
    """Count the threads to use: `QMANIFEST_THREADS`, else the usable processors."""
    asked = os.environ.get("QMANIFEST_THREADS", "")
    if asked.isascii() and asked.isdigit() and len(asked) < len(str(1 << 31)):
        return min(max(1, int(asked)), _MOST)
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), _MOST)
    return min(os.cpu_count() or 1, _MOST)


def over_groups(
    work: Callable[[tuple[int, int]], bool], groups: int, group_size: int
) -> bool:
    """Run `work` on ranges that together are all groups; tell whether all said yes."""
    threads = min(thread_count(), groups * group_size // _WORTH_A_THREAD)
    if threads < 2 or getattr(_SELF, "alone", False):  # noqa: PLR2004 - one thread is the caller's own
        return work((0, groups))
    step = -(-groups // (threads * _CHUNKS_PER_THREAD))
    ranges = [(at, min(at + step, groups)) for at in range(0, groups, step)]
    said: list[bool] = []
    shared_out(lambda each: said.append(work(each)), ranges, threads)
    return all(said)


def over_rows(
    run: Callable[[int, int], None], rows: int, products: int, threads: int
) -> None:
    """Call `run(start, stop)` for parts of `rows`, on up to `threads` threads.

    Args:
        run: what computes some rows, and waits for nobody.
        rows: how many there are.
        products: how many there are in all rows.
        threads: the most to use, the calling one among them.

    """
    parts = max(1, min(threads, products // LEAST_PRODUCTS, rows))
    if parts == 1:
        run(0, rows)
        return
    edges = [rows * part // parts for part in range(parts + 1)]
    shared_out(lambda each: run(*each), pairwise(edges), parts)


def shared_out(
    work: Callable[[Part], None], parts: Iterable[Part], threads: int
) -> None:
    """Call `work` for each of `parts`, on up to `threads` threads.

    The calling thread is one of them, and waits for no thread that is still busy with
    somebody else's work. However it ends, no other thread works on when it returns: it
    may write into memory that the caller is about to let go.
    """
    waiting = deque(parts)

    def take() -> None:
        while waiting:
            try:
                part = waiting.popleft()
            except IndexError:  # another thread has just taken the last
                return
            work(part)

    pool = _pool(os.getpid())
    others = [pool.submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        waiting.clear()
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


@lru_cache(1)
def _pool(_: int) -> ThreadPoolExecutor:
    """Keep the threads of a process, which do not survive a fork.

    One is started only where none is idle, so that there are never more than asked for.
    """
    return ThreadPoolExecutor(_MOST, thread_name_prefix="qmanifest")
