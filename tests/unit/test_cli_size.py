"""`qmanifest size`: bytes promised and stored, in every format and grouping."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import Run

from qmanifest.cli import main
from qmanifest.testing import write_checkpoint, write_raw

SEEDS = Path(__file__).parents[2].parent / "shared" / "seeds"
LISTS = {
    "quant": "q4",
    "group": 64,
    "scheme": "4-bit",
    "protected_fp16": ["norm"],
    "emb_q4": ["a.weight"],
}


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    main(["demo", str(tmp_path / "demo")])
    return tmp_path / "demo"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys, "size")


def test_sound_checkpoint_has_no_difference_but_its_header(
    run: Run, demo: Path
) -> None:
    assert run(demo) == 0
    size = (demo / "model.safetensors").stat().st_size
    header = 8 + int.from_bytes((demo / "model.safetensors").read_bytes()[:8], "little")
    assert run.rows[0] == ["part", "promised", "stored", "difference"]
    assert ["codes", "49,152", "49,152", "0"] in run.rows
    assert ["file", "headers", "-", f"{header:,}", f"+{header:,}"] in run.rows
    assert ["total", f"{size - header:,}", f"{size:,}", f"+{header:,}"] in run.rows
    assert ["model.safetensors", f"{size:,}"] in run.rows
    assert ["parameters", "98,432", "98,432"] in run.rows
    assert "belong to no tensor" not in run.out


def test_json_is_exact(run: Run, demo: Path) -> None:
    assert run(demo, "--format", "json") == 0
    document = run.json
    size = (demo / "model.safetensors").stat().st_size
    assert document["files"] == [{"file": "model.safetensors", "bytes": size}]
    assert document["stored"]["total"] == size
    assert document["promised"]["total"] + document["stored"]["headers"] == size
    assert document["promised"]["bits_per_weight"] == pytest.approx(54 / 11)
    groups = document["stored"]["groups"]
    assert [group["label"] for group in groups] == ["codes", "scales", "biases", "kept"]
    assert (
        sum(group["bytes"] for group in groups) + document["stored"]["headers"] == size
    )


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("layer", {"embed", "layers.0", "lm_head"}),
        ("bits", {"4-bit", "8-bit", "16-bit kept"}),
        ("dtype", {"U32", "F16"}),
    ],
)
def test_groupings(run: Run, demo: Path, by: str, labels: set[str]) -> None:
    assert run(demo, "--by", by, "--format", "json") == 0
    for side in ("promised", "stored"):
        assert {group["label"] for group in run.json[side]["groups"]} == labels
    assert run(demo, "--by", by) == 0
    assert all(f"\n{label} " in run.out for label in labels)


def test_lost_tensor_is_a_difference(run: Run, tmp_path: Path) -> None:
    main(["demo", str(tmp_path / "b"), "--broken"])
    assert run(tmp_path / "b") == 0
    assert ["biases", "3,072", "2,048", "-1,024"] in run.rows


def test_config_alone(run: Run, demo: Path) -> None:
    assert run("--config", demo / "quant_config.json") == 0
    assert run.rows[0] == ["part", "promised"]
    assert ["total", "55,296"] in run.rows
    assert "Not counted, because no shape is known: 1 kept tensor" in run.out


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the founding configs are not here")
def test_founding_config(run: Run) -> None:
    assert run("--config", SEEDS / "tensor_map.quant_config.json") == 0
    assert ["total", "2,156,368,896"] in run.rows
    assert ["bits", "per", "quantized", "weight", "9"] in run.rows


def test_shapes_come_from_the_original_or_from_what_is_stored(
    run: Run, tmp_path: Path
) -> None:
    table = "a affine 4/64 32x64 F16\nnorm.weight F16 64"
    model = write_checkpoint(tmp_path / "m", table, LISTS, file="emb.safetensors")
    base = write_checkpoint(
        tmp_path / "b",
        "a.weight BF16 32x64\nnorm.weight BF16 64",
        file="emb.safetensors",
    )
    config = model / "quant_config.json"
    expected = 32 * 64 // 2 + 2 * 32 * 2 + 64 * 2
    assert run("--config", config, "--shapes", base, "--format", "json") == 0
    assert run.json["promised"]["total"] == expected
    assert run.json["promised"]["unknown"] == []
    assert run.json.get("stored") is None
    assert run(model, "--format", "json") == 0
    assert run.json["promised"]["total"] == expected
    assert run.json["stored"]["total"] - run.json["stored"]["headers"] == expected
    assert run("--config", config, "--format", "json") == 0
    assert run.json["promised"]["total"] == 0


def test_checkpoint_without_config_is_only_stored(run: Run, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "a.weight F16 4x4")
    assert run(tmp_path, "--format", "json") == 0
    assert run.json["promised"] is None
    assert run.json["stored"]["kept"] == 32


def test_models_side_by_side_are_summed(run: Run, tmp_path: Path) -> None:
    config = {**LISTS, "rr_q4": ["a.weight"]}
    table = "a affine 4/64 32x64 F16"
    write_checkpoint(tmp_path, table, config, file="emb.safetensors")
    write_checkpoint(tmp_path, table, config, file="rr.safetensors")
    assert run(tmp_path, "--format", "json") == 0
    expected = 2 * (32 * 64 // 2 + 2 * 32 * 2)
    assert run.json["promised"]["total"] == expected
    assert run.json["stored"]["total"] - run.json["stored"]["headers"] == expected
    assert len(run.json["files"]) == 2


def test_tensors_of_one_name_count_twice(run: Run, tmp_path: Path) -> None:
    for file in ("m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"):
        write_checkpoint(tmp_path, "a.weight F16 4x4", file=file)
    assert run(tmp_path) == 0
    assert ["repeated", "tensors", "32"] in run.rows


def test_codes_in_another_dtype_count_as_stored(run: Run, tmp_path: Path) -> None:
    table = "a.weight F16 32x64\nnorm.weight F16 64"
    write_checkpoint(tmp_path, table, LISTS, file="emb.safetensors")
    assert run(tmp_path, "--format", "json") == 0
    assert run.json["promised"]["codes"] == 32 * 64 // 2
    assert run.json["stored"]["codes"] == 0


def test_bytes_of_no_tensor_are_said(run: Run, tmp_path: Path) -> None:
    write_raw(tmp_path / "m.safetensors", {"a": ("F16", (2,), b"1234")}, tail=b"xyz")
    assert run(tmp_path) == 0
    assert "bytes of the files belong to no tensor" in run.out


def test_markdown_cannot_be_marked_up_by_names(run: Run, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "a|b[x](y)<i>`\x1b F16 4")
    assert run(tmp_path, "--by", "layer", "--format", "markdown") == 0
    assert r"| a\|b\[x\]\(y\)\<i\>\`\x1b | 8 |" in run.out.replace("\\\\", "\\")
    assert run.out.replace("\n", "").isprintable()
    assert "| --- | ---: |" in run.out
    config = tmp_path / "q.json"
    shapeless = {"bits": 4, "group_size": 64, "kept_16bit": [], "tensors": {"a": {}}}
    config.write_text(json.dumps(shapeless))
    assert run("--config", config, "--format", "markdown") == 0
    assert "\n- promised: Not counted, because no shape is known: 1 quant" in run.out
