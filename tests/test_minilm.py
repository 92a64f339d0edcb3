"""The main job on a real model: packed, proven, read by MLX, and run through torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors import safe_open

from qmanifest import CheckpointWeights, open_checkpoint, pack_checkpoint, validate
from qmanifest.backends.reference import dequantize

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from support import minilm

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest import Report

CONFIGS = {
    "q4-lists 4-bit/64": minilm.q4_lists(4, 64),
    "q4-lists 8-bit/32": minilm.q4_lists(8, 32),
    "tensor-map mixed": minilm.tensor_map(),
}


@pytest.fixture(scope="module", params=CONFIGS)
def packed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("minilm")
    config = folder / "config_to_pack_under.json"
    config.write_text(json.dumps(CONFIGS[request.param]))
    out = folder / "out"
    pack_checkpoint(minilm.model_folder(), config, out)
    return request.param, out


def _report(out: Path) -> Report:
    return validate(out, base=minilm.model_folder(), deep=True)


def test_packed_checkpoint_is_proven_clean(packed: tuple[str, Path]) -> None:
    _, out = packed
    report = _report(out)
    assert [f.message for f in report.findings if f.severity != "note"] == []
    assert report.weights == 36
    assert {"QM301", "QM302", "QM304", "QM501", "QM503"} <= set(report.checked)
    assert "QM305" not in {finding.code for finding in report.findings}


def test_kept_tensors_and_names_are_the_source_s(packed: tuple[str, Path]) -> None:
    _, out = packed
    opened = open_checkpoint(out)
    ((_, store),) = opened.found()
    with safe_open(minilm.model_folder() / "model.safetensors", "np") as source:
        names = set(source.keys())
    assert names <= set(store.index)
    assert len(set(store.index) - names) == 72  # scales and biases of 36 weights


def test_mlx_reads_the_same_weights(packed: tuple[str, Path]) -> None:
    mx = pytest.importorskip("mlx.core")
    _, out = packed
    source = CheckpointWeights(open_checkpoint(out))
    (file,) = source.store.files
    arrays = mx.load(str(out / file))
    for name in source.names():
        scheme, shape = source.weight(name)
        stem = name.removesuffix(".weight")
        theirs = mx.dequantize(
            arrays[name],
            arrays[f"{stem}.scales"],
            arrays[f"{stem}.biases"],
            group_size=scheme.group_size,
            bits=scheme.bits,
        )
        ours = dequantize(scheme, source.stored(name), shape)
        np.testing.assert_array_equal(ours, np.array(theirs.astype(mx.float32)))


@pytest.mark.parametrize(
    ("config", "least"),
    [
        ("q4-lists 8-bit/32", 0.9995),
        ("q4-lists 4-bit/64", 0.96),
        ("tensor-map mixed", 0.96),
    ],
)
def test_sentence_embeddings_stay_close(
    config: str, least: float, tmp_path: Path
) -> None:
    file = tmp_path / "quant_config.json"
    file.write_text(json.dumps(CONFIGS[config]))
    pack_checkpoint(minilm.model_folder(), file, tmp_path / "out")
    found, report = minilm.embeddings_of(tmp_path / "out")
    assert len(report.swapped) == 36
    assert report.missing == []
    cosine = (found * minilm.embeddings_in_f32()).sum(-1)
    assert len(cosine) == 20
    assert float(cosine.mean()) >= least


def test_a_swapped_word_order_is_not_the_same_sentence() -> None:
    """The bound above can fail: other sentences are far below it."""
    embeddings = minilm.embeddings_in_f32()
    cosine = (embeddings * embeddings.roll(1, 0)).sum(-1)
    assert float(cosine.mean()) < 0.6
