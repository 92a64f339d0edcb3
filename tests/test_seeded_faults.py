"""The ten faults of docs/seeded-faults.md, each found by name and by numbers."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from qmanifest import Severity

DOCS = Path(__file__).parents[1] / "docs"


def _script() -> Any:  # noqa: ANN401 - a module
    spec = spec_from_file_location("seeded_faults", DOCS / "seeded_faults.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["seeded_faults"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


@pytest.fixture(scope="module", params=list(SCRIPT.DIALECTS))
def clean(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    dialect: str = request.param
    packed: Path = SCRIPT.pack(tmp_path_factory.mktemp("clean"), dialect)
    return dialect, packed


def test_the_checkpoint_without_a_fault_is_clean(
    clean: tuple[str, Path], tmp_path: Path
) -> None:
    dialect, folder = clean
    report = SCRIPT.judge(folder, dialect, None, tmp_path)
    assert not report.reaches(Severity.WARNING), report.findings


@pytest.mark.parametrize("key", list(SCRIPT.FAULTS))
def test_the_fault_is_found_by_name_and_numbers(
    clean: tuple[str, Path], key: str, tmp_path: Path
) -> None:
    dialect, folder = clean
    fault = SCRIPT.FAULTS[key]
    report = SCRIPT.judge(folder, dialect, fault, tmp_path)
    assert SCRIPT.naming(report, fault) is not None, report.findings


def test_the_page_shows_every_fault_as_found() -> None:
    page = (DOCS / "seeded-faults.md").read_text()
    for dialect in SCRIPT.DIALECTS:
        row = SCRIPT._row(f"**qmanifest**, {dialect}", "D" * 10)  # noqa: SLF001 - its page
        assert row in page
