"""Work done ahead: blocks are read and computed on threads, and taken in order.

Reading and the arithmetic of numpy and of compiled kernels let go of the interpreter,
so two threads keep two cores busy while the caller writes what is done. What is done
or being done takes a bounded number of bytes, however large a tensor is.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from qmanifest.threads import thread_count, work_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from concurrent.futures import Future

    from qmanifest.tensors import Shape

T = TypeVar("T")

IN_FLIGHT: Final = 48 * 1024 * 1024
"""Most bytes of blocks that are made or wait to be taken; one block may be larger."""
BLOCK: Final = 4 * 1024 * 1024
"""Most bytes of a block on its larger side, unless one row is longer.

To hand a block over costs as much as to compute a quarter of a megabyte of it.
"""


@dataclass(frozen=True, slots=True)
class Work(Generic[T]):
    """What makes one tensor: the same step for one block of it after another."""

    make: Callable[[slice], T]
    """Called on any thread, and on two at once."""
    blocks: Sequence[slice]
    nbytes: int
    """Most bytes that a block takes until it is taken."""


def in_order(
    works: Iterable[Work[T]], in_flight: int = IN_FLIGHT
) -> Generator[T, None, None]:
    """Make the blocks of all works ahead of the caller, and yield them in order.

    Whatever a block raises is raised when its turn comes. Close the iterator: the
    blocks in the making are waited for, the others are dropped, no thread is left.
    """
    steps = chain.from_iterable(
        ((partial(work.make, block), work.nbytes) for block in work.blocks)
        for work in works
    )
    waiting: deque[tuple[Future[T], int]] = deque()
    held = 0
    pool = ThreadPoolExecutor(thread_count(), "qmanifest-ahead", work_alone)
    try:
        for step, nbytes in steps:
            while waiting and held + nbytes > in_flight:
                yield waiting[0][0].result()
                held -= waiting.popleft()[1]
            waiting.append((pool.submit(step), nbytes))
            held += nbytes
        while waiting:
            yield waiting[0][0].result()
            waiting.popleft()
    finally:
        pool.shutdown(cancel_futures=True)


def cut_rows(shape: Shape, row_bytes: int, within: int = 1) -> list[slice]:
    """Cut the rows of a tensor into blocks of at most `BLOCK` bytes, or of one row.

    Args:
        shape: `(..., in_features)`; all axes but the last are counted as rows.
        row_bytes: bytes of one row.
        within: equal parts of the rows that no block may reach across.

    """
    rows = 1
    for side in shape[:-1]:
        rows *= side
    part, step = rows // max(1, within), max(1, BLOCK // max(1, row_bytes))
    return [
        slice(start, min(start + step, begin + part))
        for begin in range(0, rows, max(1, part))
        for start in range(begin, begin + part, step)
    ]


def cut_bytes(nbytes: int) -> list[slice]:
    """Cut a tensor whose rows do not matter into blocks of at most `BLOCK` bytes."""
    starts = range(0, nbytes, BLOCK)
    return [slice(start, min(start + BLOCK, nbytes)) for start in starts]


def largest_block(nbytes: int, row_bytes: int = 1) -> int:
    """Bound the bytes of the blocks that a tensor of `nbytes` is cut into."""
    return min(nbytes, max(BLOCK, row_bytes))


class Scratch(threading.local):
    """A buffer for each thread and purpose, used again and again.

    Fresh memory costs the system as much time as a kernel takes to fill it.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, bytearray] = {}

    def buffer(self, purpose: str, size: int) -> bytearray:
        """Give at least `size` bytes; they stay the caller's until it asks again."""
        found = self._buffers.get(purpose)
        if found is None or len(found) < size:
            found = self._buffers[purpose] = bytearray(size)
        return found
