"""What `import qmanifest` promises: the names, and that it costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import qmanifest

HEAVY = ("numpy", "torch", "typer", "rich", "jsonschema", "mlx")


def loaded_after(code: str, names: tuple[str, ...]) -> set[str]:
    """Run code in a new interpreter; tell which of the modules it has loaded."""
    report = f"import sys\n{code}\nprint([n for n in {names!r} if n in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", report],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return set(run.stdout.splitlines()[-1].strip("[]").replace("'", "").split(", ")) - {
        ""
    }


def test_all_is_sorted_and_without_repeats() -> None:
    assert qmanifest.__all__ == sorted(set(qmanifest.__all__))


@pytest.mark.parametrize("name", qmanifest.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(qmanifest, name)
    assert not isinstance(value, ModuleType)
    assert name in dir(qmanifest)


@pytest.mark.parametrize("name", qmanifest.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert getattr(qmanifest, name).__doc__


def test_no_public_name_is_called_like_a_module() -> None:
    folder = Path(qmanifest.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix in {".py", ""}}
    assert not modules & set(qmanifest.__all__), "an import of it would hide the name"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = qmanifest.no_such_name


def test_importing_the_package_loads_none_of_its_modules() -> None:
    code = (
        "import qmanifest\n"
        "own = [name for name in sys.modules if name.startswith('qmanifest.')]\n"
        "assert not own, own"
    )
    assert not loaded_after(code, (*HEAVY, "pydantic"))


@pytest.mark.parametrize(
    "module",
    ["qmanifest", "qmanifest.checkpoint", "qmanifest.check", "qmanifest.reports"],
)
def test_importing_the_core_loads_nothing_heavy(module: str) -> None:
    assert not loaded_after(f"import {module}", HEAVY)


def test_help_loads_no_library() -> None:
    code = (
        "from qmanifest.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    )
    assert not loaded_after(code, ("numpy", "torch", "pydantic", "jsonschema"))


def test_the_version_is_the_distribution_s() -> None:
    from importlib.metadata import version

    assert qmanifest.__version__ == version("qmanifest")
