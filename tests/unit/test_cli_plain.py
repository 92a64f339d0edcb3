"""A plain command line is read as typer reads it, and any other is left to typer."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from qmanifest.cli import app, main, plain, validating
from qmanifest.cli.plain import FLAGS, LISTS, VALUES, read_plain
from qmanifest.cli.values import FailOn, Format

OPTIONS = (*FLAGS, *LISTS, *VALUES)
WORDS = (
    *OPTIONS,
    *("--format=json", "--format=xml", "--fail-on=never", "-o=x", "-ox", "--deep=1"),
    *("--out", "--help", "-h", "--", "-", "--unknown", "--unknown=1", "validate"),
    *("model", "a b", "QM2,QM3", "text", "never", "warning", "rr=./x", "", "a=b", "é"),
    *("x\n", "\udc80", "--select=", "--select=QM2", "--config=-", "--ignore=-x"),
)


def as_called(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Give what typer makes of arguments, without what is absent; nothing on errors."""
    calls: list[dict[str, Any]] = []

    def run(paths: object = None, **others: object) -> int:
        calls.append({"paths": paths, **others})
        return 0

    with monkeypatch.context() as patched:
        patched.setattr(validating, "run", run)
        patched.setattr("qmanifest.cli.plain.read_plain", lambda _: None)
        main(arguments)
    return calls[0] if calls else {}


def with_defaults(found: dict[str, Any]) -> dict[str, Any]:
    """Add what `validating.run` takes where nothing is said."""
    parameters = inspect.signature(validating.run).parameters.values()
    return {each.name: found.get(each.name, each.default) for each in parameters}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two calls are the same; no list is as good as an empty one."""
    lists = ("paths", *LISTS.values())
    emptied = (
        {**each, **{k: list(each[k] or ()) for k in lists}} for each in (one, other)
    )
    first, second = emptied
    return first == second


@given(words=st.lists(st.sampled_from(WORDS), max_size=6))
def test_what_is_plain_is_read_as_typer_does(words: list[str]) -> None:
    arguments = ["validate", *words]
    found = read_plain(arguments)
    if found is not None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            called = as_called(arguments, monkeypatch)
        assert called, f"typer refuses {words}"
        assert same(with_defaults(found), called)


def test_everything_that_a_run_can_be_told_is_plain() -> None:
    words = ["a", "--deep", "b", "--full", "--component", "rr=x", "--select=QM2"]
    words += ["--select", "QM3", "--ignore", "QM9", "--config", "c", "--config-only=d"]
    words += ["--base", "e", "--dialect", "mlx", "--format", "json"]
    words += ["--fail-on", "never", "-o", "f"]
    assert read_plain(["validate", *words]) == {
        "paths": [Path("a"), Path("b")],
        "deep": True,
        "full": True,
        "component": ["rr=x"],
        "select": ["QM2", "QM3"],
        "ignore": ["QM9"],
        "config": Path("c"),
        "config_only": Path("d"),
        "base": Path("e"),
        "dialect": "mlx",
        "report_format": Format.JSON,
        "fail_on": FailOn.NEVER,
        "output": Path("f"),
    }
    keys = {*FLAGS.values(), *LISTS.values(), *(key for key, _ in VALUES.values())}
    assert keys | {"paths"} == set(inspect.signature(validating.run).parameters)


def test_every_option_of_typer_is_known() -> None:
    command: Any = get_command(app.app)
    validate = command.commands["validate"]
    named = {text for each in validate.params for text in each.opts if text[0] == "-"}
    assert set(OPTIONS) == {*named} - {"--help", "-h"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["size", "model"],
        ["--help"],
        ["validate", "--help"],
        ["validate", "model", "--deep=yes"],
        ["validate", "model", "--config", "--deep"],
        ["validate", "model", "--config"],
        ["validate", "model", "--config", "a", "--config", "b"],
        ["validate", "model", "--format", "xml"],
        ["validate", "model", "-ofile"],
        ["validate", "model", "--selec", "QM2"],
        ["validate", "model\x1b"],
        ["validate", ""],
        ["validate", "--", "model"],
    ],
    ids=repr,
)
def test_anything_else_is_left_to_typer(arguments: list[str]) -> None:
    assert read_plain(arguments) is None


def test_a_plain_run_loads_no_typer(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from qmanifest.cli import main; "
        f"main(['validate', {str(tmp_path)!r}]); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert {"typer", "numpy", "rich"}.isdisjoint(done.stderr.split())
    assert plain.__name__ in done.stderr.split()
