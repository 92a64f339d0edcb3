"""Sizes of every family: exact bytes, true parameters, and bits per weight."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from support.cli import Run
from support.golden_checkpoints import CHECKPOINTS, Checkpoint
from support.models import save

if TYPE_CHECKING:
    from pathlib import Path

each_family = pytest.mark.parametrize("made", CHECKPOINTS, ids=lambda made: made.file)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys, "size")


@each_family
def test_promised_is_what_is_stored(run: Run, tmp_path: Path, made: Checkpoint) -> None:
    folder = made.write(tmp_path)
    assert run(folder, "--format", "json") == 0
    document, tensors = run.json, made.tensors()
    promised, there = document["promised"], document["stored"]
    nbytes = sum(tensor.nbytes for tensor in tensors.values())
    assert there["total"] == nbytes + there["headers"]
    assert promised["total"] == nbytes
    assert promised["unknown"] == there["unknown"] == []
    assert [each["bytes"] for each in document["files"]] == [there["total"]]

    parameters = math.prod(made.shape)
    dense = ("m.bias", "norm.weight")
    kept = sum(math.prod(tensors[name].shape) for name in dense)
    parts = sum(t.nbytes for name, t in tensors.items() if name not in dense)
    for side in (promised, there):
        assert side["quantized_parameters"] == parameters
        assert side["parameters"] == parameters + kept
        assert side["bits_per_weight"] == pytest.approx(8 * parts / parameters)
        assert side["as_16bit"] == 2 * (parameters + kept)


@each_family
@pytest.mark.parametrize("by", ["part", "layer", "bits", "dtype"])
def test_every_grouping_sums_to_the_total(
    run: Run, tmp_path: Path, made: Checkpoint, by: str
) -> None:
    folder = made.write(tmp_path)
    assert run(folder, "--by", by, "--format", "json") == 0
    for side in (run.json["promised"], run.json["stored"]):
        summed = sum(group["bytes"] for group in side["groups"])
        assert summed + side["headers"] == side["total"]
    assert run(folder, "--by", by) == 0
    assert "difference" in run.rows[0]


@each_family
def test_without_a_config_nothing_is_guessed(
    run: Run, tmp_path: Path, made: Checkpoint
) -> None:
    folder = save(tmp_path, made.tensors())
    assert run(folder, "--format", "json") == 0
    there = run.json["stored"]
    assert run.json["promised"] is None
    assert there["bits_per_weight"] is None
    assert there["unknown"] != []
