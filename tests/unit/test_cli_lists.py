"""`rules`, `dialects`, `schema` and `explain`: what there is, and what it means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.cli import Run

from qmanifest.cli import main
from qmanifest.dialects import DIALECTS
from qmanifest.rules import RULES
from qmanifest.schema import SCHEMAS, schema
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

TENSOR = "layers.0.attention.q_proj.weight"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    main(["demo", str(tmp_path / "broken"), "--broken"])
    return tmp_path / "broken"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def test_rules(run: Run) -> None:
    assert run("rules") == 0
    listed = [line.split()[0] for line in run.out.splitlines()]
    assert listed == sorted(rule.code for rule in RULES)
    assert run("rules", "--format", "json") == 0
    (dead,) = (each for each in run.json if each["code"] == "QM203")
    assert dead == {
        "code": "QM203",
        "name": "dead-entry",
        "severity": "error",
        "needs": "headers",
        "summary": "An entry of the config matches no tensor.",
    }


def test_dialects(run: Run) -> None:
    assert run("dialects") == 0
    assert all(dialect.title in run.out for dialect in DIALECTS)
    assert run("dialects", "--format", "json") == 0
    assert [each["id"] for each in run.json] == [dialect.id for dialect in DIALECTS]
    assert run.json[0]["file_name"] == "quant_config.json"
    for each, dialect in zip(run.json, DIALECTS, strict=True):
        assert each["read"] is True
        assert (each["emit"], each["decode"]) == (dialect.emits, dialect.decodes)


def test_dialects_say_what_is_done_with_them(run: Run) -> None:
    assert run("dialects") == 0
    lines = {line.split()[0]: line for line in run.out.splitlines()}
    assert " read, emit, decode " in lines["mlx"]
    assert " read, emit, decode most " in lines["gptq"]
    assert " read, no values " in lines["exl3"]


def test_schema_lists_and_prints(run: Run) -> None:
    assert run("schema") == 0
    assert [line.split()[0] for line in run.out.splitlines()] == list(SCHEMAS)
    assert run("schema", "q4-lists") == 0
    assert run.json == schema("q4-lists")


def test_schema_writes_all(run: Run, tmp_path: Path) -> None:
    assert run("schema", "--write", tmp_path / "v1") == 0
    names = {path.stem for path in (tmp_path / "v1").iterdir()}
    assert names == set(SCHEMAS)


def test_schema_check_finds_the_dialect(run: Run, broken: Path) -> None:
    assert run("schema", "--check", broken / "quant_config.json") == 0
    assert "fits the schema of tensor-map" in run.out


def test_schema_check_shows_every_misfit_with_its_line(
    run: Run, tmp_path: Path
) -> None:
    config = tmp_path / "q\x1b.json"
    value = {"bits": "4", "group_size": 64, "kept_16bit": ["a", "a"], "tensors": {}}
    config.write_text(json.dumps(value, indent=1))
    assert run("schema", "--check", config) == 1
    first, second = run.out.splitlines()
    assert r"q\x1b.json:2:2 #/bits: '4' is not of type 'integer'" in first
    assert "q\\x1b.json:4:2 #/kept_16bit: ['a', 'a'] has non-unique elements" in second


def test_schema_check_looks_into_blocks(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    block = {"bits": 4, "group_size": 0}
    config.write_text(json.dumps({"hidden_size": 8, "quantization": block}))
    assert run("schema", "mlx", "--check", config) == 1
    assert "#/quantization/group_size" in run.out


def test_schema_check_of_a_report(run: Run, broken: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run("validate", broken, "--format", "json", "-o", report)
    assert run("schema", "report", "--check", report) == 0
    report.write_text(report.read_text().replace('"findings"', '"found"'))
    assert run("schema", "report", "--check", report) == 1


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": 1, "a": 2}', "\udcff"])
def test_schema_check_of_damage(run: Run, tmp_path: Path, text: str) -> None:
    config = tmp_path / "c.json"
    config.write_bytes(text.encode(errors="surrogateescape"))
    assert run("schema", "tensor-map", "--check", config) == 1
    assert "c.json" in run.out


def test_schema_check_needs_to_know_what_it_is(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text("{}")
    assert run("schema", "--check", config) == 2
    assert "no known dialect" in run.err


@pytest.mark.parametrize("subject", ["QM203", "qm203", "dead-entry"])
def test_explain_a_rule(run: Run, subject: str) -> None:
    assert run("explain", subject) == 0
    assert run.out.startswith("QM203 dead-entry (error, needs: headers)\n\nAn entry of")
    assert "\n## Why it matters\n" in run.out


def test_explain_suggests(run: Run) -> None:
    assert run("explain", "dead-entri") == 2
    assert "did you mean 'dead-entry'?" in run.err


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_a_page_of_plain_text(run: Run, rule: Any) -> None:  # noqa: ANN401 - a Rule
    assert run("explain", rule.code) == 0
    assert run.out.replace("\n", "").isprintable()
    assert rule.summary in run.out


@pytest.mark.parametrize("part", ["weight", "scales", "biases"])
def test_explain_a_quantized_tensor_by_any_part(
    run: Run, broken: Path, part: str
) -> None:
    assert run("explain", broken, TENSOR.replace("weight", part)) == 0
    lines = run.out.splitlines()
    assert lines[0] == f"'{TENSOR}' is quantized"
    assert lines[1].startswith(
        f"entry:      quant_config.json:17:3 #/tensors/{TENSOR} "
    )
    assert lines[2] == (
        "scheme:     affine(bits=8, group=64, scale=F16|BF16, pack=u32-lsb)"
    )
    assert lines[3] == "shape:      [64, 128], by the declared shape [64, 128]"
    assert "U32 [64, 32]" in lines[6]
    assert "U32 [64, 16] in model.safetensors, bytes " in lines[6]


def test_explain_what_is_lost_kept_or_unclaimed(run: Run, broken: Path) -> None:
    assert run("explain", broken, "layers.0.mlp.up_proj.weight") == 0
    assert run.out.splitlines()[-1].endswith("in no file")
    assert run("explain", broken, "layers.0.norm.weight") == 0
    assert "is kept 16-bit" in run.out
    assert "(glob 'layers.*.norm.weight', keep)" in run.out
    assert "promised:   F16 or BF16" in run.out
    assert "stored:     F16 [128] in model.safetensors" in run.out
    assert run("explain", broken, "lm_head.weight") == 0
    assert "no entry claims it" in run.out


def test_explain_an_unknown_tensor(run: Run, broken: Path) -> None:
    assert run("explain", broken, "lm_haed.weight") == 2
    assert "did you mean 'lm_head.weight'?" in run.err


def test_explain_without_declared_shape(run: Run, tmp_path: Path) -> None:
    config = {
        "quant": "q4",
        "group": 64,
        "scheme": "4-bit",
        "protected_fp16": [],
        "emb_q4": ["a.weight", "*.weight"],
        "rr_q4": ["a.weight"],
    }
    table = "a affine 4/64 32x64 F16"
    write_checkpoint(tmp_path, table, config, file="emb.safetensors")
    assert run("explain", tmp_path, "a.weight") == 0
    lines = run.out.splitlines()
    assert "component:  emb" in lines
    assert (
        "also by:    quant_config.json:8:3 #/emb_q4/1 (glob '*.weight', quantize)"
        in (lines)
    )
    assert "shape:      [32, 64], by the stored codes at the promised bits" in lines
    assert "component:  rr" in lines
    assert "shape:      not known" in lines


def test_explain_by_the_model_s_dimensions(run: Run, tmp_path: Path) -> None:
    model = {"hidden_size": 128, "quantization": {"group_size": 64, "bits": 4}}
    table = "layers.0.mlp.up_proj affine 4/64 32x128 F16\nx.up_proj affine 4/64 4x64"
    write_checkpoint(tmp_path, table, model, config_name="config.json")
    assert run("explain", tmp_path, "layers.0.mlp.up_proj.scales") == 0
    lines = run.out.splitlines()
    assert lines[1] == "entry:      config.json:3:2 #/quantization"
    assert lines[3] == "shape:      [32, 128], by hidden_size = 128"


def test_explain_what_is_not_packed(run: Run, tmp_path: Path) -> None:
    block = {"group_size": 64, "bits": 4, "a": {"bits": 8}}
    model = {"quantization": block}
    write_checkpoint(tmp_path, "a.weight F16 4x64", model, config_name="config.json")
    assert run("explain", tmp_path, "a.weight") == 0
    assert "shape:      not known" in run.out
    assert "codes 'a.weight'" in run.out
    assert "F16 [4, 64] in model.safetensors" in run.out


def test_explain_hostile_names(run: Run, tmp_path: Path) -> None:
    name = "a\x1b\u202e\n.weight"
    config = {
        "bits": 4,
        "group_size": 64,
        "kept_16bit": [],
        "tensors": {name: {"shape": [4, 64]}},
    }
    write_checkpoint(tmp_path, "b F16 4", config)
    assert run("explain", tmp_path, name) == 0
    assert run.out.replace("\n", "").isprintable()
    assert r"a\x1b\u202e\n.weight" in run.out


@pytest.mark.parametrize("command", [("explain", "a.weight"), ("size",)])
def test_a_config_that_cannot_be_read_is_said(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    write_checkpoint(tmp_path, "b F16 4", {"bits": 4, "tensors": {}})
    name, *rest = command
    assert run(name, tmp_path, *rest) == 2
    assert "quant_config.json: key " in run.err
    assert "`qmanifest validate` says all" in run.err
