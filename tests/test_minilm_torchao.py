"""A real model that torchao quantized: proven clean, and read the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("torchao")

from safetensors.torch import load_file
from support import live_torchao as live
from support import minilm

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
    report = minilm.proven_clean(folder, "torchao")
    assert "QM408" in report.checked


def test_weights_are_the_library_s(
    quantized: tuple[Path, dict[str, torch.Tensor]],
) -> None:
    folder, expected = quantized
    theirs = {name: weight.numpy() for name, weight in expected.items()}
    minilm.assert_same_weights(folder, theirs, live.as_bfloat16)
