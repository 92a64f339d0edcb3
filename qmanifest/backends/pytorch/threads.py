"""Rows shared out to threads, for kernels that hold no GIL.

These are Python's threads: torch's own wait by spinning, and would take the processor
from whoever else computes between two products.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_PRODUCTS: Final = 1 << 22
"""Products that are worth waking a thread for: a fifth of a millisecond of work."""


def shared_out(
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
    others = [
        _pool(os.getpid(), threads).submit(run, start, stop)
        for start, stop in pairwise(edges[1:])
    ]
    run(edges[0], edges[1])
    for other in others:
        other.result()


@lru_cache(1)
def _pool(_: int, threads: int) -> ThreadPoolExecutor:
    """Start threads once per process: they do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix="qmanifest")
