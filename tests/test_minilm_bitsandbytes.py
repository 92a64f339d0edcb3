"""A real model that bitsandbytes quantized: proven clean, and read the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("bitsandbytes")

from safetensors.torch import load_file, save_file
from support import live_bitsandbytes as live
from support import minilm

if TYPE_CHECKING:
    from pathlib import Path

    import torch

KINDS = ("nf4", "nf4-nested", "int8")
KEPT = ("pooler.dense", "word_embeddings")


@pytest.fixture(scope="module", params=KINDS)
def quantized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, torch.Tensor]]:
    """Quantize the encoder; give the folder, and the weights that the library makes."""
    folder, kind = tmp_path_factory.mktemp("minilm"), request.param
    source = load_file(minilm.model_folder() / "model.safetensors")
    expected = {}
    for name in minilm.ENCODER:
        weight, nested = source.pop(name).float(), kind.endswith("nested")
        tensors, theirs = (
            live.eight_bits(name, weight)
            if kind == "int8"
            else live.four_bits(name, weight, nested=nested)
        )
        source |= tensors
        expected[name] = theirs.float()
    whole = {key: tensor.contiguous() for key, tensor in source.items()}
    save_file(whole, folder / "model.safetensors", {"format": "pt"})
    config = live.config(
        bits=8 if kind == "int8" else 4, nested=kind.endswith("nested"), skip=KEPT
    )
    document = {**minilm.model_config(), "quantization_config": config}
    (folder / "config.json").write_text(json.dumps(document))
    return folder, expected


def test_checkpoint_is_proven_clean(
    quantized: tuple[Path, dict[str, torch.Tensor]],
) -> None:
    folder, _ = quantized
    report = minilm.proven_clean(folder, "bitsandbytes")
    assert "QM508" in report.checked


def test_weights_are_the_library_s(
    quantized: tuple[Path, dict[str, torch.Tensor]],
) -> None:
    folder, expected = quantized
    theirs = {name: weight.numpy() for name, weight in expected.items()}
    minilm.assert_same_weights(folder, theirs)
