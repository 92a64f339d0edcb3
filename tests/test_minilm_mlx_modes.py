"""A real model that MLX quantized in each of its modes: clean, and read the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("mlx")

from support import minilm
from support.owners import owner

if TYPE_CHECKING:
    from pathlib import Path

mx = owner("mlx.core")
MODES = {"affine": (4, 64), "mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}
"""Bits, and inputs that share a scale."""


@pytest.fixture(scope="module", params=MODES)
def quantized(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, dict[str, Any]]:
    """Quantize the encoder; give the mode, the folder, and MLX's own weights."""
    mode, folder = request.param, tmp_path_factory.mktemp("minilm")
    settings = dict(zip(("bits", "group_size"), MODES[mode], strict=True))
    settings["mode"] = mode
    arrays = dict(mx.load(str(minilm.model_folder() / "model.safetensors")))
    expected = {}
    for name in minilm.ENCODER:
        parts = mx.quantize(arrays[name].astype(mx.float16), **settings)
        stem = name.removesuffix(".weight")
        names = (name, f"{stem}.scales", f"{stem}.biases")
        arrays |= dict(zip(names, parts, strict=False))
        rebuilt = mx.dequantize(*parts, **settings, dtype=mx.float32)
        if mode == "affine":
            rebuilt = mx.dequantize(*parts, **settings).astype(mx.float32)
        expected[name] = np.array(rebuilt)
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, {"format": "mlx"})
    config = {**minilm.model_config(), "quantization": settings}
    config["quantization_config"] = settings
    (folder / "config.json").write_text(json.dumps(config))
    return mode, folder, expected


def test_checkpoint_is_proven_clean(
    quantized: tuple[str, Path, dict[str, Any]],
) -> None:
    mode, folder, _ = quantized
    report = minilm.proven_clean(folder, "mlx")
    assert mode == "affine" or "QM507" in report.checked


def test_weights_are_those_of_mlx(
    quantized: tuple[str, Path, dict[str, Any]],
) -> None:
    _, folder, expected = quantized
    minilm.assert_same_weights(folder, expected)
