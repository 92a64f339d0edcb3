"""Which rules run, what is said of those that do not, and in which order it is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support import memory

from qmanifest.check import NO_CONFIG, UNREAD, assert_valid, check
from qmanifest.checkpoint import open_checkpoint, open_config
from qmanifest.errors import InvalidCheckpointError
from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules import RULES
from qmanifest.rules.base import Depth, Rule, rule
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qmanifest.check import Report
    from qmanifest.checkpoint import Checkpoint

CONFIG = {
    "bits": 3,
    "group_size": 32,
    "kept_16bit": [],
    "tensors": {"m.weight": {"shape": [8, 64]}},
}
TABLE = "m affine 3/32 8x64 F16"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path, TABLE, CONFIG)


def reasons(report: Report) -> dict[str, str]:
    return {skip.code: skip.reason for skip in report.skipped}


def codes(*, needs: set[Depth]) -> set[str]:
    return {each.code for each in RULES if each.needs in needs}


def finding(code: str, *severities: Severity | None) -> Rule:
    """Make a rule that finds a problem of each severity."""

    def found(_: Checkpoint, /) -> Iterator[Problem]:
        for number, severity in enumerate(severities):
            yield Problem(f"{code} {number}", (Location("f"),), severity=severity)

    made = rule(code, "made-up", Severity.ERROR, needs=Depth.FILES)
    return made(found)


def test_everything_is_run_or_skipped(sound: Path) -> None:
    for deep in (False, True):
        report = check(open_checkpoint(sound), deep=deep)
        assert not report.findings
        assert not {*report.checked} & {*reasons(report)}
        assert {*report.checked, *reasons(report)} == {each.code for each in RULES}
        assert (report.dialect, report.weights, report.tensors) == ("tensor-map", 1, 3)
        assert report.path == str(sound)


def test_data_is_read_when_asked_to(sound: Path) -> None:
    shallow = check(open_checkpoint(sound))
    assert {*reasons(shallow)} == codes(needs={Depth.DATA, Depth.REFERENCE})
    assert "--deep" in reasons(shallow)["QM501"]
    deep = check(open_checkpoint(sound), deep=True)
    assert {*reasons(deep)} == codes(needs={Depth.REFERENCE})


def test_without_config_only_files_are_checked(sound: Path) -> None:
    (sound / "quant_config.json").unlink()
    report = check(open_checkpoint(sound), deep=True)
    assert reasons(report)["QM101"] == reasons(report)["QM301"] == NO_CONFIG
    assert {"QM001", "QM106", "QM404", "QM405", "QM802"} <= {*report.checked}
    assert report.dialect is None


def test_config_alone(sound: Path) -> None:
    report = check(open_config(sound / "quant_config.json"), deep=True)
    assert not report.findings
    beyond = {Depth.HEADERS, Depth.DATA, Depth.REFERENCE}
    of_files = {each.code for each in RULES if each.any_files}
    assert {*reasons(report)} == codes(needs=beyond) | of_files
    assert set(reasons(report).values()) == {"only the config is checked"}


def test_config_without_weights(sound: Path) -> None:
    (sound / "model.safetensors").unlink()
    report = check(open_checkpoint(sound), deep=True)
    assert reasons(report)["QM201"] == "there are no safetensors files"
    assert [each.code for each in report.findings] == ["QM401"]


def test_config_that_is_refused_proves_nothing(sound: Path) -> None:
    """A rule that needs the manifest was not run, though its depth was reached."""
    broken = json.dumps({**CONFIG, "bits": "3"})
    (sound / "quant_config.json").write_text(broken, encoding="utf-8")
    report = check(open_checkpoint(sound))
    assert [each.code for each in report.findings] == ["QM102"]
    for code in ("QM104", "QM105", "QM108", "QM205", "QM301", "QM901"):
        assert reasons(report)[code] == UNREAD
    assert "QM102" in report.checked


def test_unread_header_makes_absence_unknown(sound: Path) -> None:
    (sound / "other.safetensors").write_bytes(b"")
    report = check(open_checkpoint(sound))
    assert [each.code for each in report.findings] == ["QM001"]
    absent = {each.code for each in RULES if each.absence}
    assert absent
    assert all("not every shard" in reasons(report)[code] for code in absent)
    assert "QM301" in report.checked


def test_select_and_ignore_take_prefixes(sound: Path) -> None:
    opened = open_checkpoint(sound)
    assert check(opened, select=("QM30", "QM102")).checked == (
        *("QM102", "QM301", "QM302", "QM303", "QM304", "QM305"),
        *("QM306", "QM307"),
    )
    report = check(opened, select=("QM2",), ignore=("QM20", "QM999"))
    assert report.checked == ("QM210", "QM211", "QM212", "QM213")
    assert reasons(report)["QM201"] == "ignored on request"
    assert "QM301" not in reasons(report)
    nothing = check(opened, select=("QM9",), ignore=("QM9",))
    assert not nothing.checked
    assert {*reasons(nothing)} == {"QM901", "QM902"}


def test_worst_comes_first_then_the_code() -> None:
    made = [
        finding("QM901", None, Severity.NOTE),
        finding("QM101", Severity.WARNING, Severity.NOTE, None),
        finding("QM001", Severity.NOTE),
    ]
    report = check(memory.checkpoint({}), rules=made)
    assert [(each.severity, each.message) for each in report.findings] == [
        (Severity.ERROR, "QM101 2"),
        (Severity.ERROR, "QM901 0"),
        (Severity.WARNING, "QM101 0"),
        (Severity.NOTE, "QM001 0"),
        (Severity.NOTE, "QM101 1"),
        (Severity.NOTE, "QM901 1"),
    ]
    assert report.count(Severity.NOTE) == 3
    assert report.count(Severity.ERROR) == 2


def test_reaches() -> None:
    noted = check(memory.checkpoint({}), rules=[finding("QM901", Severity.NOTE)])
    assert noted.reaches(Severity.NOTE)
    assert not noted.reaches(Severity.WARNING)
    warned = check(memory.checkpoint({}), rules=[finding("QM901", Severity.WARNING)])
    assert warned.reaches(Severity.WARNING)
    assert not warned.reaches(Severity.ERROR)
    assert not check(memory.checkpoint({}), rules=[]).reaches(Severity.NOTE)


def test_assert_valid(sound: Path) -> None:
    assert not assert_valid(sound, deep=True).findings
    write_checkpoint(sound, "m affine 4/32 8x64 F16", CONFIG)
    with pytest.raises(InvalidCheckpointError, match="QM301") as caught:
        assert_valid(sound)
    assert caught.value.path == str(sound)
    assert len(caught.value.messages) == 1
