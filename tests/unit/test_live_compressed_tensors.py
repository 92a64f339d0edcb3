"""`compressed-tensors` against the library: what it writes, and what that means.

Every preset that a CPU can run, and the settings between them: strategies, dtypes,
zero points, shapes that fill no whole words or blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from qmanifest import CheckpointWeights, open_checkpoint, validate
from qmanifest.backends.reference import dequantize
from qmanifest.dialects.compressed_tensors.args import QuantizationScheme
from qmanifest.dialects.compressed_tensors.groups import inferred
from qmanifest.dialects.compressed_tensors.presets import preset

pytest.importorskip("torch")
pytest.importorskip("compressed_tensors")

import torch
from compressed_tensors.quantization.quant_scheme import PRESET_SCHEMES
from compressed_tensors.quantization.quant_scheme import (
    QuantizationScheme as TheirScheme,
)
from support import live_compressed_tensors as live

if TYPE_CHECKING:
    from pathlib import Path

NAME = "model.layers.0.mlp.up_proj"
PRESETS = sorted(PRESET_SCHEMES.keys() - {"UNQUANTIZED"})
ACTIVATIONS = {"num_bits": 8, "strategy": "tensor"}


def assert_same(
    folder: Path,
    scheme: TheirScheme,
    shape: tuple[int, int],
    dtype: str = "bfloat16",
) -> None:
    """Compress a layer with the library, and read it as it does."""
    generator = torch.Generator().manual_seed(7)
    weight = (torch.randn(shape, generator=generator) / 10).to(getattr(torch, dtype))
    tensors = live.compress(weight, scheme)
    expected = live.decompress(tensors, scheme)
    beside = {"model_type": "toy", "hidden_size": shape[1]}
    norm = {"model.norm.weight": torch.ones(shape[1])}
    config = live.config_of(scheme)
    live.save(folder, {NAME: tensors}, config, beside=beside, others=norm)
    assert [each.message for each in validate(folder, deep=True).findings] == []
    source = CheckpointWeights(open_checkpoint(folder))
    assert source.names() == (f"{NAME}.weight",)
    found, most = source.weight(f"{NAME}.weight")
    assert most[0] == shape[0]
    assert most[1] >= shape[1]  # a padded row does not show where it ends
    ours = dequantize(found, source.stored(f"{NAME}.weight"), shape)
    np.testing.assert_array_equal(ours, expected.float().numpy())


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str, tmp_path: Path) -> None:
    shape = (130, 192) if name == "FP8_BLOCK" else (72, 256)
    assert_same(tmp_path, live.scheme_named(name), shape)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "weights",
    [
        {"num_bits": 4, "group_size": 32},
        {"num_bits": 3, "group_size": 16, "symmetric": False},
        {"num_bits": 5, "strategy": "channel", "symmetric": False},
        {"num_bits": 6, "strategy": "channel"},
        {"num_bits": 7, "strategy": "tensor"},
        {"num_bits": 4, "strategy": "tensor", "symmetric": False},
        {"type": "float", "strategy": "tensor"},
        {"type": "float", "strategy": "block", "block_structure": [32, 64]},
        {"type": "float", "group_size": 64, "strategy": "group"},
        {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "group"},
    ],
    ids=str,
)
def test_weights_alone(weights: dict[str, Any], dtype: str, tmp_path: Path) -> None:
    scheme = TheirScheme(targets=["Linear"], weights=weights)
    assert_same(tmp_path, live.with_format(scheme), (48, 128), dtype)


@pytest.mark.parametrize(
    "weights",
    [
        {"symmetric": False, "strategy": "channel"},
        {"symmetric": False, "group_size": 64, "strategy": "group"},
        {"symmetric": False, "strategy": "tensor"},
        {"strategy": "block", "block_structure": [32, 32]},
        {"type": "float", "group_size": 64, "strategy": "group"},
    ],
    ids=str,
)
def test_weights_with_static_inputs(weights: dict[str, Any], tmp_path: Path) -> None:
    scheme = TheirScheme(
        targets=["Linear"], weights=weights, input_activations=ACTIVATIONS
    )
    assert_same(tmp_path, live.with_format(scheme), (48, 128))


@pytest.mark.parametrize(("bits", "width"), [(3, 70), (5, 35), (8, 33), (1, 40)])
def test_rows_that_fill_no_whole_words(bits: int, width: int, tmp_path: Path) -> None:
    weights = {"num_bits": bits, "strategy": "channel"}
    scheme = TheirScheme(targets=["Linear"], weights=weights)
    assert_same(tmp_path, live.with_format(scheme), (19, width))


@pytest.mark.parametrize("name", sorted(PRESET_SCHEMES))
def test_presets_are_the_library_s(name: str) -> None:
    ours = preset(name)
    theirs = live.scheme_named(name)
    assert ours is not None
    keys = ("num_bits", "type", "symmetric", "group_size", "block_structure", "dynamic")
    for role in ("weights", "input_activations", "output_activations"):
        one, two = getattr(ours, role), getattr(theirs, role)
        assert (one is None) == (two is None), role
        if one is not None:
            for key in keys:
                assert getattr(one, key) == getattr(two, key), (role, key)
            assert one.spread == two.strategy
            dtype = two.scale_dtype and str(two.scale_dtype)
            assert one.scale_dtype == dtype
    assert inferred(ours) == theirs.format.value


def test_what_the_library_writes_is_read_in_full() -> None:
    for name in PRESETS:
        config = live.config_of(live.scheme_named(name))
        (group,) = config["config_groups"].values()
        assert QuantizationScheme.model_validate(group).targets == ["Linear"]


@pytest.mark.parametrize("name", ["W9A16", "W4A2", "W8A4", "NVFP8", ""])
def test_other_names_are_no_presets(name: str) -> None:
    assert preset(name) is None
    with pytest.raises(KeyError):
        live.scheme_named(name)
