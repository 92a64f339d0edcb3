"""Every example runs, offline and in seconds, and says what it is there to say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from qmanifest.check import check
from qmanifest.checkpoint import open_config
from qmanifest.dialects import DIALECTS, recognize
from qmanifest.findings import Severity
from qmanifest.reading.config_file import read_config

EXAMPLES = Path(__file__).parent.parent / "examples"
SAID = {
    "build_manifest": "mlx: config.json, 0 findings",
    "pack_and_validate": "2 weights proved",
    "sizes": "81/16 bits per weight",
    "torch_matmul": "2 layers swapped, 2 copied",
}
"""A line's beginning that each script has to print."""
NAMING = ("tensor-map", "q4-lists", "mlx", "quanto")
"""Dialects whose config names weights; of others the tensors show what is quantized."""
CONFIGS = sorted(path for path in EXAMPLES.rglob("*.json"))


def test_every_script_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_script_runs(name: str, tmp_path: Path) -> None:
    if name.startswith("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    run = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert any(line.startswith(SAID[name]) for line in run.stdout.splitlines())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.parent.name)
def test_config_is_valid_and_of_one_dialect(path: Path) -> None:
    raw = read_config(path, path.name).object
    assert raw is not None
    (dialect,) = recognize(raw)
    assert dialect.id == path.parent.name.replace("_", "-")
    report = check(open_config(path))
    found = [each for each in report.findings if each.severity is not Severity.NOTE]
    assert not found
    assert bool(report.weights) == (dialect.id in NAMING)


def test_every_dialect_has_an_example() -> None:
    assert {path.parent.name.replace("_", "-") for path in CONFIGS} == {
        dialect.id for dialect in DIALECTS
    }
