"""`qmanifest hash`: lines for `sha256sum`, JSON, and one line for what went wrong."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from qmanifest.cli import main
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "m", "w.weight F16 32x64", {"tensors": {}})


def test_text_and_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (model / "model.safetensors").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert main(["hash", str(model)]) == 0
    assert capsys.readouterr() == (f"{digest}  model.safetensors\n", "")
    assert main(["hash", str(model), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"file": "model.safetensors", "size": len(data), "sha256": digest}
    ]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gone", "No such file or directory. Check the path."),
        (".", "has no safetensors file. Check the path."),
        ("fifo", "'x.safetensors': a FIFO stands where a regular file should."),
    ],
)
def test_failures_are_one_line(
    tmp_path: Path, path: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fifo").mkdir()
    if path == "fifo":
        os.mkfifo(tmp_path / "fifo" / "x.safetensors")
    assert main(["hash", str(tmp_path / path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("qmanifest: ")
    assert says in err
    assert err.count("\n") == 1
