"""A real model that compressed-tensors quantized: proven clean, and read the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from safetensors.torch import load_file

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("compressed_tensors")

from support import live_compressed_tensors as live
from support import minilm

if TYPE_CHECKING:
    from pathlib import Path

    import torch

PRESETS = ("W4A16", "FP8", "NVFP4A16", "MXFP4A16")
BITS = {"W4A16": 4.125, "FP8": 8.0, "NVFP4A16": 4.5, "MXFP4A16": 4.25}
"""Bits of a weight with its scale, as far as they grow with the matrix."""


@pytest.fixture(scope="module", params=PRESETS)
def quantized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, dict[str, torch.Tensor]]:
    """Quantize the encoder; give the preset, the folder, and the library's weights."""
    preset, scheme = request.param, live.scheme_named(request.param)
    source = load_file(minilm.model_folder() / "model.safetensors")
    modules, expected = {}, {}
    for name in minilm.ENCODER:
        weight = source.pop(name).bfloat16()
        stored = live.compress(weight, scheme)
        modules[name.removesuffix(".weight")] = stored
        expected[name] = live.decompress(stored, scheme).float()
    folder = live.save(
        tmp_path_factory.mktemp("minilm"),
        modules,
        live.config_of(scheme, ignore=("pooler.dense",)),
        beside=minilm.model_config(),
        others=source,
    )
    return preset, folder, expected


def test_checkpoint_is_proven_clean(
    quantized: tuple[str, Path, dict[str, torch.Tensor]],
) -> None:
    preset, folder, _ = quantized
    report = minilm.proven_clean(folder, "compressed-tensors")
    assert "QM203" not in {finding.code for finding in report.findings}
    ratio = _bits_stored(folder) / sum(map(_weights, minilm.ENCODER))
    assert ratio == pytest.approx(BITS[preset], abs=0.01)


def _bits_stored(folder: Path) -> int:
    """Count the bits of everything that the encoder's weights are stored as."""
    tensors = load_file(folder / "model.safetensors").items()
    stems = tuple(minilm.ENCODER)
    return sum(
        8 * tensor.numel() * tensor.element_size()
        for name, tensor in tensors
        if name.startswith(stems)
    )


def _weights(name: str) -> int:
    """Count the weights of a matrix of the encoder."""
    inner = ".attention." not in name
    return 384 * (1536 if inner else 384)


def test_weights_are_the_library_s(
    quantized: tuple[str, Path, dict[str, torch.Tensor]],
) -> None:
    _, folder, expected = quantized
    theirs = {name: weight.numpy() for name, weight in expected.items()}
    minilm.assert_same_weights(folder, theirs)
