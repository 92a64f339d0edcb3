"""Two or more Python threads over ranges of groups.

Kernels release the GIL, in numpy and compiled alike, so that plain threads run side by
side. They end with the work: no pool of idle threads spins beside torch's own.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_WORTH_A_THREAD: Final = 1 << 19
"""Elements: half a millisecond of work, several times what a thread costs."""
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
    with ThreadPoolExecutor(threads) as pool:
        return all(list(pool.map(work, ranges)))
