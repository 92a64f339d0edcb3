"""Run a command, and learn its seconds and its peak memory.

A child's peak is never below what its parent had when it started it, and a benchmark
holds much. So a small interpreter stands between the two, and does the measuring.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.harness import Timed

if TYPE_CHECKING:
    from collections.abc import Sequence

MEGABYTE: Final = 1_000_000
_BETWEEN: Final = """\
import json, os, sys, time
began = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                       file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - began
code = os.waitstatus_to_exitcode(status)
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([seconds, usage.ru_maxrss * unit, code]))
"""


@dataclass(frozen=True, slots=True)
class Run(Timed):
    """One run of a command."""

    peak_bytes: int


def run_python(arguments: Sequence[str], expected: int = 0) -> Run:
    """Run this interpreter with `arguments`.

    It may keep bytecode, as it has of an installed package: without, every run of an
    editable one would compile it anew.

    Raises:
        RuntimeError: it ended with another exit code than expected.

    """
    between = [sys.executable, "-I", "-S", "-c", _BETWEEN]
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [*between, sys.executable, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=kept,
    )
    seconds, peak, code = json.loads(done.stdout)
    if code != expected:
        raise RuntimeError(f"{arguments[:3]} ended with {code}: {done.stderr[-2000:]}")
    return Run(seconds, peak)


class Peak:
    """A command that remembers the most memory that any of its runs took."""

    def __init__(self, arguments: Sequence[str], expected: int = 0) -> None:
        self.arguments, self.expected = tuple(arguments), expected
        self.megabytes = 0.0

    def __call__(self) -> Run:
        """Run the command once."""
        run = run_python(self.arguments, self.expected)
        self.megabytes = max(self.megabytes, run.peak_bytes / MEGABYTE)
        return run
