"""How `qmanifest validate` grows with the number of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks import checkpoints
from benchmarks.harness import Contender, Contest, Limit, Row, within
from benchmarks.processes import Peak

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.harness import Setup

SHARDS: Final = 160
LINEAR: Final = 1.2
"""Ten times the tensors may take so many times ten times as long."""
MOST_MEGABYTES: Final = 400
"""Of a process that validates 100,000 tensors."""


def _validate(folder: Path, tensors: int) -> Peak:
    """Make a checkpoint, and the command that validates it."""
    checkpoints.write_many(folder, tensors, SHARDS)
    checkpoints.write_glob_config(folder)
    return Peak(("-m", "qmanifest", "validate", str(folder), "--ignore", "QM9"))


def _setup(tensors: int, most_megabytes: float | None) -> Setup:
    """Validate a checkpoint, and ten times one of a tenth of its tensors."""

    def setup(folder: Path) -> Contest:
        large = _validate(folder / "large", tensors)
        small = _validate(folder / "small", tensors // 10)

        def limits() -> Iterator[Limit]:
            if most_megabytes is not None:
                yield Limit("megabytes", large.megabytes, most_megabytes)

        peer = Contender(small, scale=10)
        return Contest(Contender(large), {"10 x a tenth": peer}, limits)

    return setup


ROWS: Final = (
    Row(
        "validate 99,840 tensors",
        0,
        (within("10 x a tenth", LINEAR),),
        _setup(99_840, MOST_MEGABYTES),
        rounds=3,
        warm=False,
    ),
    Row(
        "validate 998,400 tensors",
        0,
        (within("10 x a tenth", LINEAR),),
        _setup(998_400, None),
        rounds=1,
        warm=False,
    ),
)
