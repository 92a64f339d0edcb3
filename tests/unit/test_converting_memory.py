"""Memory of `pack` and `unpack`: bounded, whatever the size of a tensor."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.models import normal, save, stored, write_json

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("resource")

ROWS, WIDTH = 16_384, 4_096
LARGEST = ROWS * WIDTH * 2
"""Bytes of the tensor: 128 MiB in F16."""
ROOM = LARGEST // 2
"""What may be taken for it; the blocks in flight alone are 48 MiB."""

MEASURE = """
import resource, sys
from pathlib import Path
from qmanifest import pack_checkpoint, unpack_checkpoint

def grown(name):
    pack_checkpoint(root / name, root / "c.json", root / f"{name}-p")
    unpack_checkpoint(root / f"{name}-p", root / f"{name}-d")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

root = Path(sys.argv[1])
before = grown("small")
print(grown("large") - before)
"""


def sparse(path: Path) -> None:
    """Write a checkpoint of one large tensor of zeros that takes no room on disk."""
    path.mkdir()
    entry = {"dtype": "F16", "shape": [ROWS, WIDTH], "data_offsets": [0, LARGEST]}
    header = json.dumps({"a.weight": entry}).encode()
    with (path / "model.safetensors").open("wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        stream.truncate(8 + len(header) + LARGEST)


def test_a_large_tensor_takes_no_more_than_blocks(tmp_path: Path) -> None:
    sparse(tmp_path / "large")
    save(tmp_path / "small", {"a.weight": stored(normal(8, 128), "F16")})
    config = {"bits": 4, "group_size": 64, "kept_16bit": [], "tensors": {"*": {}}}
    write_json(tmp_path / "c.json", config)
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, os.fspath(tmp_path)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(ran.stdout) * unit < ROOM
