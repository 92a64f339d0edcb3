"""The command line as a whole: help, errors, exit codes, and what it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from qmanifest import __version__
from qmanifest.cli import main
from qmanifest.cli.app import COMMANDS
from qmanifest.errors import WriteError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [name for name, _, _ in COMMANDS]
LIBRARIES = {
    *("numpy", "torch", "pydantic", "jsonschema", "rich", "re2", "mlx", "hypothesis"),
    *("qmanifest.check", "qmanifest.checkpoint", "qmanifest.rules", "qmanifest.schema"),
    *("qmanifest.dialects", "qmanifest.reports", "qmanifest.converting"),
}


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_and_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:\n" in shown
    assert f"  qmanifest {name}" in shown.partition("Examples:")[2]
    assert "  -h, --help" in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"qmanifest {__version__}\n"


def test_nothing_asked_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: qmanifest" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["bo\x1b[31m\n\u202egus"],
        ["validate"],
        ["validate", "no/such/folder"],
        ["validate", "no\x1b/such\nfolder"],
        ["validate", "nul\0l"],
        ["validate", ".", "--format", "xml"],
        ["validate", ".", "--bogus\x1b"],
        ["validate", ".", "--config-only", "x.json"],
        ["validate", ".", "--component", "x"],
        ["validate", ".", "--component", "x=no/such"],
        ["validate", ".", "--component", "x=.", "--component", "x=."],
        ["validate", ".", "--select", "QM2,XX"],
        ["validate", ".", "--dialect", "mlxx"],
        ["size"],
        ["match"],
        ["match", "a.*"],
        ["match", "a.*", "--config", "pyproject.toml"],
        ["explain"],
        ["explain", "QM999"],
        ["explain", "zzz\0"],
        ["explain", "."],
        ["schema", "tensor-mop"],
        ["pack"],
        ["pack", "no/such", "--config", "x", "-o", "y"],
        ["unpack", "no/such", "-o", "y"],
    ],
    ids=repr,
)
def test_wrong_usage_is_a_printable_message_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("qmanifest: ")
    assert err.count("\n") == 1
    assert err.removesuffix("\n").isprintable()


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("qmanifest.dialects.dialect_named", fail)
    monkeypatch.setattr("qmanifest.cli.dialects.say_table", fail)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (FileNotFoundError(2, "gone", "a\nb"), r"qmanifest: a\nb: gone"),
        (OSError("odd\x1b"), r"qmanifest: odd\x1b"),
        (WriteError("disk:\n  full\x1b"), "qmanifest: disk:\n  full\\x1b"),
        (
            ZeroDivisionError("x"),
            "qmanifest: ZeroDivisionError: x (--debug shows where)",
        ),
    ],
)
def test_failures_are_messages(
    error: Exception,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(monkeypatch, error)
    assert main(["dialects"]) == 2
    assert capsys.readouterr().err == f"{shown}\n"


def test_debug_lets_errors_through(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ZeroDivisionError("x"))
    with pytest.raises(ZeroDivisionError):
        main(["--debug", "dialects"])
    with pytest.raises(ZeroDivisionError):
        main(["dialects", "--debug"])


def test_interrupt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert main(["dialects"]) == 130
    assert capsys.readouterr().err == "qmanifest: interrupted\n"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        env=os.environ | environment,
    )


def test_runs_as_a_module() -> None:
    done = python("-m", "qmanifest", "--version")
    assert done.returncode == 0
    assert done.stdout.decode().strip() == f"qmanifest {__version__}"


def test_help_loads_no_library() -> None:
    code = (
        "import sys; from qmanifest.cli import main; "
        "main(['--help']); print(*sys.modules)"
    )
    loaded = set(python("-c", code).stdout.decode().split("\n")[-2].split())
    assert "qmanifest.cli.app" in loaded
    assert not loaded.intersection(LIBRARIES)


def test_a_reader_that_stops_is_no_failure_to_shout_about() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "qmanifest", "rules"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 2


def test_terminal_that_lacks_characters(tmp_path: Path) -> None:
    text = '{"bits\u6f22": 1, "tensors": {}}'
    (tmp_path / "quant_config.json").write_text(text, encoding="utf-8")
    done = python(
        *("-m", "qmanifest", "validate", str(tmp_path)),
        PYTHONIOENCODING="latin-1",
        PYTHONUTF8="0",
    )
    assert done.returncode == 1
    assert rb"bits\u6f22" in done.stdout
    assert done.stderr == b""
