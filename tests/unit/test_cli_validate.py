"""`qmanifest validate`: formats, exit codes, choices of rules, and files written."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import pytest
from support.cli import Run

from qmanifest.cli import main
from qmanifest.rules import RULES
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

LISTS = {"quant": "q4", "group": 64, "scheme": "4-bit", "protected_fp16": ["norm"]}


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    main(["demo", str(tmp_path / "sound")])
    return tmp_path / "sound"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    main(["demo", str(tmp_path / "broken"), "--broken"])
    return tmp_path / "broken"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys, "validate")


def test_sound_checkpoint(run: Run, sound: Path) -> None:
    assert run(sound, "--deep") == 0
    assert run.err == ""
    assert run.out == (
        "0 errors, 0 warnings, 0 notes; 17 tensors, 5 weights in u32-lsb, "
        "dialect tensor-map\n"
    )


def test_broken_checkpoint_shows_each_fault_with_its_line(
    run: Run, broken: Path
) -> None:
    assert run(broken) == 1
    lines = run.out.splitlines()
    assert any(
        line.startswith("quant_config.json:5:3 #/kept_16bit/0: QM203 error: ")
        for line in lines
    )
    assert "  hint: did you mean 'lm_head.weight'?" in lines
    assert any(": QM206 error: " in line and "up_proj.biases" in line for line in lines)
    assert any(": QM301 error: " in line and "q_proj" in line for line in lines)
    assert lines[-1].startswith("3 errors, ")


def test_shallow_check_says_what_it_skipped(run: Run, sound: Path) -> None:
    assert run(sound) == 0
    assert "skipped: QM501" in run.out
    assert "--deep" in run.out


def test_json_is_the_only_output(run: Run, broken: Path) -> None:
    assert run(broken, "--format", "json") == 1
    assert run.err == ""
    assert run.codes >= {"QM203", "QM206", "QM301"}
    assert run.json["summary"]["paths"] == [str(broken)]
    (dead,) = (f for f in run.json["findings"] if f["code"] == "QM203")
    assert dead["at"][0]["line"] == 5


def test_sarif_and_github(run: Run, broken: Path) -> None:
    assert run(broken, "--format", "sarif") == 1
    (only,) = run.json["runs"]
    assert {result["ruleId"] for result in only["results"]} >= {"QM203", "QM301"}
    assert run(broken, "--format", "github") == 1
    assert (
        f"::error file={broken}/quant_config.json,line=5,col=3,title=QM203::" in run.out
    )


def test_select_and_ignore(run: Run, broken: Path) -> None:
    assert run(broken, "--format", "json", "--select", "QM203,qm301") == 1
    assert run.codes == {"QM203", "QM301"}
    run(broken, "--format", "json", "--select", "QM2", "--ignore", "QM203,QM210")
    assert run.codes == {"QM206"}
    skipped = {skip["code"] for skip in run.json["skipped"]}
    assert skipped == {"QM203", "QM210"}
    assert run(broken, "--ignore", "QM2", "--ignore", "QM3") == 0


def test_unknown_code_is_told_what_it_may_mean(run: Run, broken: Path) -> None:
    assert run(broken, "--select", "QM2003") == 2
    assert "did you mean 'QM203'?" in run.err
    assert run(broken, "--ignore", "dead-entry") == 2
    assert "did you mean 'QM203'?" in run.err


def test_every_prefix_of_a_code_is_known(run: Run, sound: Path) -> None:
    codes = ",".join(rule.code[:length] for rule in RULES for length in (2, 3, 4, 5))
    assert run(sound, "--select", codes) == 0


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 0), ("warning", 1), ("never", 0)]
)
def test_fail_on(run: Run, broken: Path, fail_on: str, code: int) -> None:
    assert run(broken, "--select", "QM210", "--fail-on", fail_on) == code
    assert "1 warning" in run.out


def test_never_fails_on_errors(run: Run, broken: Path) -> None:
    assert run(broken, "--fail-on", "never") == 0
    assert "3 errors" in run.out


def test_nothing_checked_is_a_failure(run: Run, sound: Path) -> None:
    assert run(sound, "--select", "QM501") == 2
    assert "nothing was checked" in run.err
    assert "--deep" in run.err


def test_output_is_written_whole(run: Run, broken: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("old")
    assert run(broken, "--format", "json", "-o", report) == 1
    assert run.out == ""
    assert json.loads(report.read_text())["summary"]["errors"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "report.json"]


def test_output_that_cannot_be_written(run: Run, broken: Path, tmp_path: Path) -> None:
    assert run(broken, "-o", tmp_path / "none" / "report.txt") == 2
    assert "report.txt" in run.err
    assert not (tmp_path / "none").exists()


def test_config_only(run: Run, sound: Path) -> None:
    config = sound / "quant_config.json"
    assert run("--config-only", config) == 0
    assert "only the config is checked" in run.out
    assert run(config) == 0
    assert "only the config is checked" in run.out


def test_config_only_of_another_name(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "mine.txt"
    config.write_text('{"bits": 4}')
    assert run("--config-only", config) == 1
    assert "mine.txt" in run.out


def test_config_that_lies_elsewhere_is_shown_there(
    run: Run, broken: Path, tmp_path: Path
) -> None:
    (tmp_path / "configs").mkdir()
    config = tmp_path / "configs" / "mine.json"
    (broken / "quant_config.json").rename(config)
    assert run(broken, "--config", config) == 1
    assert "\n../configs/mine.json:17:3 " in run.out
    assert run(broken, "--config", config, "--format", "github") == 1
    assert f"file={config}," in run.out


def test_config_of_the_checkpoint_itself_is_shown_by_its_name(
    run: Run, broken: Path
) -> None:
    assert run(broken, "--config", broken / "quant_config.json") == 1
    assert "\nquant_config.json:17:3 " in run.out


def test_index_files_have_lines_too(run: Run, tmp_path: Path) -> None:
    table = "norm.weight F16 64"
    write_checkpoint(tmp_path, table, {**LISTS, "emb_q4": []}, file="emb.safetensors")
    index = {"metadata": {}, "weight_map": {"norm.weight": "absent.safetensors"}}
    path = tmp_path / "emb.safetensors.index.json"
    path.write_text(json.dumps(index, indent=1))
    assert run(tmp_path, "--select", "QM401,QM403") == 1
    assert "emb.safetensors.index.json:" in run.out


def test_components(run: Run, tmp_path: Path) -> None:
    config = {**LISTS, "emb_q4": ["a.weight"], "rr_q4": ["b.weight"]}
    table = "a affine 4/64 32x64 F16"
    model = write_checkpoint(tmp_path / "m", table, config, file="emb.safetensors")
    other = write_checkpoint(tmp_path / "o", "b affine 4/64 32x64 F16")
    assert run(model, "--component", f"rr={other}") == 0
    assert run(model) == 1


def test_base_is_a_witness(run: Run, tmp_path: Path) -> None:
    config = {**LISTS, "emb_q4": ["a.weight"]}
    table = "a affine 4/64 32x64 F16"
    model = write_checkpoint(tmp_path / "m", table, config, file="emb.safetensors")
    base = write_checkpoint(
        tmp_path / "b", "a.weight F16 32x128", file="emb.safetensors"
    )
    assert run(model) == 0
    assert run(model, "--base", base, "--format", "json") == 1
    assert run.codes & {"QM301", "QM302", "QM304"}


def test_forced_dialect(run: Run, sound: Path) -> None:
    assert run(sound, "--dialect", "q4-lists") == 1
    assert "dialect q4-lists" in run.out
    assert run(sound, "--dialect", "tensor-mop") == 2
    assert "did you mean 'tensor-map'?" in run.err


def test_several_paths(run: Run, sound: Path, broken: Path) -> None:
    assert run(sound, broken) == 1
    assert f"\n{sound}: 0 errors, " in f"\n{run.out}"
    assert f"{broken}/quant_config.json:5:3 " in run.out
    run(sound, broken, "--format", "json")
    assert run.json["summary"]["paths"] == [str(sound), str(broken)]


def test_one_absent_path_of_several_checks_none(run: Run, broken: Path) -> None:
    assert run(broken, broken / "absent") == 2
    assert run.out == ""


def test_full_lists_what_else_is_grouped(run: Run, tmp_path: Path) -> None:
    names = [f"layer.{number}.weight" for number in range(9)]
    config = {**LISTS, "emb_q4": names}
    write_checkpoint(tmp_path, "norm.weight F16 64", config, file="emb.safetensors")
    assert run(tmp_path, "--select", "QM201") == 1
    assert "QM201 error x 9 tensors, first: " in run.out
    assert run.out.count("QM201") == 1
    run(tmp_path, "--select", "QM201", "--full")
    assert run.out.count("QM201 error: ") == 9


HOSTILE = "evil\x1b[2J\u202e\n::error::x.weight"


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_hostile_names_are_harmless(run: Run, tmp_path: Path, form: str) -> None:
    config = {
        "bits": 4,
        "group_size": 64,
        "kept_16bit": [HOSTILE, "[/red]"],
        "tensors": {f"{HOSTILE}2": {"shape": [4, 64]}, "\ud800": {"shape": [4, 64]}},
        f"key{HOSTILE}": 1,
    }
    write_checkpoint(tmp_path, "[/red] F16 4", config)
    assert run(tmp_path, "--format", form, "--full") == 1
    assert run.out.replace("\n", "").isprintable()
    assert not any(line.startswith("::error::") for line in run.out.splitlines())
    del config[f"key{HOSTILE}"]
    write_checkpoint(tmp_path, "[/red] F16 4", config)
    assert run(tmp_path, "--format", form, "--full") == 1
    assert run.out.replace("\n", "").isprintable()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_on_a_terminal_only_and_not_against_wishes(
    no_color: str, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    main(["validate", str(broken)])
    assert ("\x1b[1;31m" in terminal.getvalue()) == (not no_color)
