"""A progress line on the terminal, for work that takes longer than a second."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Final, Self

_PATIENCE: Final = 1.0
"""Seconds before the line appears."""
_PAUSE: Final = 0.1
"""Seconds between two states of it."""
_WIDTH: Final = 30
_CLEAR: Final = "\r\x1b[K"


class ProgressLine:
    """Shows how many bytes are done, on stderr and only if that is a terminal."""

    def __init__(self) -> None:
        self._next = monotonic() + _PATIENCE
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Show the state, unless the last one is too fresh."""
        now = monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + _PAUSE
        self._shown = True
        sys.stderr.write(_CLEAR + line(done, total, name))
        sys.stderr.flush()


def line(done: int, total: int, name: str) -> str:
    """Write a bar, the share that is done, and what is being worked on."""
    from qmanifest.reports.printable import printable
    from qmanifest.reports.shorten import shorten

    share = min(done / total, 1.0) if total else 1.0
    bar = "#" * int(share * _WIDTH)
    return f"[{bar:<{_WIDTH}}] {share:4.0%} {shorten(printable(name), 40)}"
