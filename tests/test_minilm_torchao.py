"""A real model that torchao quantized: proven clean, and read the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("torchao")

from safetensors.torch import load_file
from support import live_torchao as live
from support import minilm

from qmanifest import CheckpointWeights, open_checkpoint, validate
from qmanifest.backends.reference import dequantize

if TYPE_CHECKING:
    from pathlib import Path

    import torch

KINDS = ("int8", "int4-groups")
pytestmark = pytest.mark.filterwarnings("ignore")  # of deprecations in their code


@pytest.fixture(scope="module", params=KINDS)
def quantized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, torch.Tensor]]:
    """Quantize the encoder; give the folder, and the weights that the library makes."""
    folder, config = tmp_path_factory.mktemp("minilm"), live.named(request.param)
    tensors = dict(load_file(minilm.model_folder() / "model.safetensors"))
    expected = {}
    for name in minilm.ENCODER:
        tensors[name] = live.quantize(tensors[name].bfloat16(), config)
        expected[name] = tensors[name].dequantize().bfloat16().float()
    return live.save(folder, tensors, config, minilm.model_config()), expected


def test_checkpoint_is_proven_clean(
    quantized: tuple[Path, dict[str, torch.Tensor]],
) -> None:
    folder, _ = quantized
    report = validate(folder, base=minilm.model_folder(), deep=True)
    assert [f.message for f in report.findings if f.severity != "note"] == []
    assert report.weights == len(minilm.ENCODER)
    assert report.dialect == "torchao"
    assert "QM408" in report.checked


def test_weights_are_the_library_s(
    quantized: tuple[Path, dict[str, torch.Tensor]],
) -> None:
    folder, expected = quantized
    source = CheckpointWeights(open_checkpoint(folder))
    assert set(source.names()) == expected.keys()
    for name, theirs in expected.items():
        scheme, shape = source.weight(name)
        ours = dequantize(scheme, source.stored(name), shape)
        rounded = live.as_bfloat16(ours)
        np.testing.assert_array_equal(rounded, theirs.numpy())
