"""`explain` of a weight of every family: by its own name, and by any part's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.golden_checkpoints import CHECKPOINTS, Checkpoint

from qmanifest.cli.story import story_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("made", CHECKPOINTS, ids=lambda made: made.file)
def test_every_part_tells_the_same(tmp_path: Path, made: Checkpoint) -> None:
    folder = made.write(tmp_path)
    told = story_of(folder, made.weight, None, {})
    assert told[0] == f"{made.weight!r} is quantized"
    assert any(line.startswith("scheme: ") for line in told)
    shape = next(line for line in told if line.startswith("shape: "))
    assert str(list(made.shape)) in shape
    assert not [line for line in told if "in no file" in line]
    for name in made.names.values():
        assert story_of(folder, name, None, {}) == told
