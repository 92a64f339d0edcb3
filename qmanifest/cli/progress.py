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
_NAME: Final = 30
"""Characters of a tensor's name that fit beside the rest in 80 columns."""
_MEGABYTE: Final = 10**6
_GIGABYTE: Final = 10**9
_CLEAR: Final = "\r\x1b[K"


class ProgressLine:
    """Shows how many bytes are done, on stderr and only if that is a terminal."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._next = self._began + _PATIENCE
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
        sys.stderr.write(_CLEAR + line(done, total, name, now - self._began))
        sys.stderr.flush()


def line(done: int, total: int, name: str, seconds: float) -> str:
    """Write a bar, the share that is done, how fast, and what is being worked on."""
    from qmanifest.reports.printable import printable
    from qmanifest.reports.shorten import shorten

    share = min(done / total, 1.0) if total else 1.0
    bar = "#" * int(share * _WIDTH)
    what = shorten(printable(name), _NAME)
    return f"[{bar:<{_WIDTH}}] {share:4.0%} {rate(done, seconds):>9} {what}"


def rate(done: int, seconds: float) -> str:
    """Say how many bytes were done per second: `212 MB/s`, `1.4 GB/s`."""
    speed = done / seconds if seconds > 0 else 0.0
    if speed >= _GIGABYTE:
        return f"{speed / _GIGABYTE:.1f} GB/s"
    return f"{speed / _MEGABYTE:.0f} MB/s"
