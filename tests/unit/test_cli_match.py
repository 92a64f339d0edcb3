"""`qmanifest match`: the ledger of entries and names, and lists folded."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from support.cli import Run

from qmanifest.cli import main
from qmanifest.patterns import match, read_entry
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"layers.{number}.{part}.weight" for number in range(12) for part in "qkv"]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    main(["demo", str(tmp_path / "broken"), "--broken"])
    return tmp_path / "broken"


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join([*NAMES, "", "head.weight"]))
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys, "match")


def test_config_against_checkpoint(run: Run, broken: Path) -> None:
    config = broken / "quant_config.json"
    assert run("--config", config, "--names", broken) == 1
    dead, glob, exact = run.out.splitlines()[:3]
    assert dead == (
        "#/kept_16bit/0 keep exact 'lm_haed.weight': matches nothing; "
        "nearest: 'lm_head.weight'"
    )
    assert glob == (
        "#/kept_16bit/1 keep glob 'layers.*.norm.weight': 1 name: "
        "'layers.0.norm.weight'"
    )
    assert exact == "#/tensors/embed.weight quantize exact 'embed.weight': found"
    assert run.out.splitlines()[-1] == (
        "7 entries, 1 matching nothing; 7 names, 0 contested, 1 claimed by no entry"
    )


def test_json(run: Run, broken: Path) -> None:
    config = broken / "quant_config.json"
    assert run("--config", config, "--names", broken, "--format", "json") == 1
    (ledger,) = run.json
    assert ledger["names"] == 7
    assert ledger["unclaimed"] == ["lm_head.weight"]
    dead, glob, *_, last = ledger["entries"]
    assert dead["matches"] == []
    assert dead["nearest"] == "lm_head.weight"
    assert glob["syntax"] == "glob"
    assert last["scheme"].startswith("affine(bits=4, group=64")


def test_patterns_against_a_list(run: Run, listed: Path) -> None:
    assert run("layers.{0..3}.q.*", "re:.*[kv].weight", "--names", listed) == 0
    first, second, last = run.out.splitlines()
    assert first.startswith("pattern 1 try glob 'layers.{0..3}.q.*': 4 names: ")
    assert second.endswith("and 21 more")
    assert last.endswith("37 names, 0 contested, 9 claimed by no entry")


def test_changed_prefix_is_told(run: Run, listed: Path) -> None:
    assert run("model.layers.1.q.weight", "--names", listed) == 1
    assert "nearest: 'layers.1.q.weight' (prefix 'model.' replaced by '')" in run.out


def test_contested_names_and_bad_patterns(run: Run, listed: Path) -> None:
    assert run("head.*", "*.weight", "re:(", "--names", listed) == 1
    assert "contested: 'head.weight' by pattern 1, pattern 2" in run.out
    assert "'re:(': cannot be used: " in run.out


def test_names_of_an_index_file(run: Run, tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a.weight": "m.safetensors"}}))
    assert run("a.*", "--names", index) == 0
    assert "1 name: 'a.weight'" in run.out


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\n \n"])
def test_names_that_are_none(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes(content)
    assert run("a.*", "--names", path) == 2
    assert "names.txt" in run.err


def test_names_of_a_checkpoint(run: Run, broken: Path) -> None:
    assert run("layers.0.*", "--names", broken) == 0
    assert "5 names: " in run.out
    assert run("layers.0.*", "--names", broken / "model.safetensors") == 0


def test_names_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert run("a.*", "--names", tmp_path / "fifo") == 2
    assert "a FIFO stands where a regular file should" in run.err


def test_config_by_itself_matches_the_names_that_it_spells_out(
    run: Run, broken: Path
) -> None:
    assert run("--config", broken / "quant_config.json") == 0
    assert "'lm_haed.weight': found" in run.out
    assert "'layers.*.norm.weight': matches nothing" in run.out


def test_components_apart(run: Run, tmp_path: Path) -> None:
    config = {
        "quant": "q4",
        "group": 64,
        "scheme": "4-bit",
        "protected_fp16": ["norm"],
        "emb_q4": ["a.weight"],
        "rr_q4": ["b.weight"],
    }
    write_checkpoint(tmp_path, "a affine 4/64 32x64", config, file="emb.safetensors")
    write_checkpoint(
        tmp_path, "b affine 4/64 32x64\nnorm.b F16 4", file="rr.safetensors"
    )
    assert run("--config", tmp_path / "quant_config.json", "--names", tmp_path) == 1
    lines = run.out.splitlines()
    assert "emb: #/emb_q4/0 quantize exact 'a.weight': found" in lines
    assert "rr: #/protected_fp16/0 keep substring 'norm': 1 name: 'norm.b'" in lines


def test_checkpoint_with_none_of_the_components(run: Run, tmp_path: Path) -> None:
    config = {
        "quant": "q4",
        "group": 64,
        "scheme": "",
        "protected_fp16": [],
        "e_q4": [],
    }
    path = tmp_path / "q.json"
    path.write_text(json.dumps(config))
    (tmp_path / "m").mkdir()
    assert run("--config", path, "--names", tmp_path / "m") == 2
    assert "none of the config's components" in run.err


def test_fold_is_shorter_and_exact(run: Run, tmp_path: Path, listed: Path) -> None:
    kept = [name for name in NAMES if ".q." in name]
    rest: dict[str, object] = {
        name: {"shape": [4, 64]} for name in NAMES if ".q." not in name
    }
    rest["layers.3.k.weight"] = {"bits": 8}
    config = {"bits": 4, "group_size": 64, "kept_16bit": kept, "tensors": rest}
    path = tmp_path / "quant_config.json"
    path.write_text(json.dumps(config))
    assert run("--config", path, "--names", listed, "--fold", "--format", "json") == 0
    expected = {
        ("#/kept_16bit", None): set(kept),
        ("#/tensors", "4"): set(rest) - {"layers.3.k.weight"},
        ("#/tensors", "8"): {"layers.3.k.weight"},
    }
    assert len(run.json) == 3
    for fold in run.json:
        scheme = fold["scheme"] and fold["scheme"].partition("bits=")[2][0]
        patterns = [read_entry(text) for text in fold["patterns"]]
        assert len(patterns) < 4
        matches = match(patterns, [*NAMES, "head.weight"])
        found = {name for at in range(len(patterns)) for name in matches.of(at)}
        assert found == expected[fold["list"], scheme]
    assert run("--config", path, "--fold") == 0
    assert run.out.startswith("#/kept_16bit: 12 names, 1 pattern\n  'layers.")


def test_hostile_names(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("a\x1b[31m\u202e.weight\n", encoding="utf-8")
    for more in ([], ["--fold"], ["--format", "json"]):
        assert run("a*", "b\x1b", "--names", path, *more) == 1
        assert run.out.replace("\n", "").isprintable()
