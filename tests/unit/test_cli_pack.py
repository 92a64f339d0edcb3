"""`pack`, `unpack` and `demo`: thin wrappers, their options, and the progress line."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import pytest

from qmanifest.cli import main, progress
from qmanifest.cli.progress import ProgressLine, line, rate
from qmanifest.cli.values import UsageError, size_in_bytes
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "a.weight F32 32x64\nb.weight F32 32x64\nnorm.weight F32 64"
CONFIG = {
    "bits": 4,
    "group_size": 64,
    "kept_16bit": ["norm.weight"],
    "tensors": {"a.weight": {}, "b.weight": {"bits": 8}},
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "source", TABLE, CONFIG)


def run(*arguments: object) -> int:
    return main([*map(str, arguments)])


def test_pack_validate_unpack(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, out, dense = source / "quant_config.json", tmp_path / "o", tmp_path / "d"
    assert run("pack", source, "--config", config, "-o", out) == 0
    shown, err = capsys.readouterr()
    assert err == ""
    assert f"check it: qmanifest validate {out} --base {source}" in shown
    assert run("validate", out, "--deep", "--base", source) == 0
    assert run("unpack", out, "-o", dense, "--dtype", "float32") == 0
    assert run("size", dense, "--format", "json") == 0
    sizes = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert sizes["stored"]["kept"] == 4 * (2 * 32 * 64 + 64)


def test_pack_options(source: Path, tmp_path: Path) -> None:
    config, out = source / "quant_config.json", tmp_path / "o"
    pack = ("pack", source, "--config", config, "-o", out)
    assert run(*pack, "--shard-size", "2KB", "--dtype", "bfloat16") == 0
    shards = sorted(path.name for path in out.glob("*.safetensors"))
    assert len(shards) > 1
    assert (out / "model.safetensors.index.json").exists()
    assert run(*pack) == 2
    assert run(*pack, "--force") == 0
    assert [path.name for path in out.glob("*.safetensors")] == ["model.safetensors"]


def test_pack_refuses_in_lines_that_can_be_read(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "q.json"
    config.write_text(
        json.dumps({**CONFIG, "tensors": {"x\x1b\n.weight": {"shape": [4, 64]}}})
    )
    assert run("pack", source, "--config", config, "-o", tmp_path / "o") == 2
    err = capsys.readouterr().err
    assert err.startswith("qmanifest: ")
    assert err.replace("\n", "").isprintable()
    assert not (tmp_path / "o" / "quant_config.json").exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5GB", 5 * 10**9),
        ("500 mb", 500 * 10**6),
        ("1.5GiB", 3 << 29),
        ("2k", 2000),
        ("4KiB", 4096),
        ("123", 123),
        ("7B", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "-1", "0", "1e9", "5XB", "0.1", "3iB", "1 2"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        size_in_bytes(text)


@pytest.mark.parametrize("broken", [(), ("--broken",)])
def test_demo_is_refused_where_something_is(
    tmp_path: Path, broken: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "demo"
    assert run("demo", folder, *broken) == 0
    assert f"qmanifest validate {folder}" in capsys.readouterr().out
    assert run("validate", folder) == len(broken)
    capsys.readouterr()
    assert run("demo", folder) == 2
    assert "is not empty" in capsys.readouterr().err
    assert run("demo", folder, "--force") == 0
    assert run("validate", folder) == 0


def test_demo_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert run("demo", tmp_path / "file", "--force") == 2
    assert (tmp_path / "file").read_text() == "x"


class Terminal(io.StringIO):
    def __init__(self, *, real: bool) -> None:
        super().__init__()
        self.real = real

    def isatty(self) -> bool:
        return self.real


@pytest.mark.parametrize("real", [True, False])
def test_progress_shows_on_a_terminal_only(
    real: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal(real=real)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with ProgressLine() as shown:
        shown(1, 4, "a\x1b.weight")
        shown(2, 4, "later")
    text = terminal.getvalue()
    assert ("  25% " in text) == real
    assert (r"a\x1b.weight" in text) == real
    assert "later" not in text
    assert text.endswith("\r\x1b[K") == real


def test_progress_waits_for_work_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(real=True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressLine() as shown:
        shown(1, 4, "a")
    assert terminal.getvalue() == ""


def test_progress_line() -> None:
    bar = f"[{'#' * 15}{' ' * 15}]  50%"
    assert line(10**9, 2 * 10**9, "x", 4.0) == f"{bar}  250 MB/s x"
    assert line(0, 0, "x", 0.0).startswith("[####")
    assert len(line(9, 9, "y" * 500, 1.0)) < 80


@pytest.mark.parametrize(
    ("done", "seconds", "said"),
    [
        (0, 0.0, "0 MB/s"),
        (999_400_000, 1.0, "999 MB/s"),
        (3_000_000_000, 2.0, "1.5 GB/s"),
        (10**13, 1.0, "10000.0 GB/s"),
    ],
)
def test_rate(done: int, seconds: float, said: str) -> None:
    assert rate(done, seconds) == said


def test_progress_tells_the_rate_since_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, clock = Terminal(real=True), iter([100.0, 102.0])
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with ProgressLine() as shown:
        shown(50_000_000, 100_000_000, "a")
    assert "50%   25 MB/s a" in terminal.getvalue()
