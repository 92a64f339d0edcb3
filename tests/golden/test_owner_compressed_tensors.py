"""compressed-tensors itself: its packing, and what it makes of what it compressed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.formats import CT
from support.golden import assert_same
from support.owners import owner, stored

from qmanifest.backends.reference import dequantize
from qmanifest.packings import pack, unpack
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.schemes import Integer, Scaled
from qmanifest.spreads import Spread

helpers = owner("compressed_tensors.compressors.pack_quantized.helpers")
quantization = owner("compressed_tensors.quantization")
numbers = owner("compressed_tensors.quantization.utils.helpers")
compressors = owner("compressed_tensors.compressors")


@pytest.mark.parametrize("shape", [(40, 64), (37, 35), (9, 7)])
@pytest.mark.parametrize("bits", range(1, 9))
def test_int32_words(bits: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(bits)
    codes = rng.integers(0, 1 << bits, shape, np.uint8)
    signed = torch.from_numpy(codes.astype(np.int16) - (1 << bits - 1)).to(torch.int8)
    for dim, layout in ((1, "i32-lsb"), (0, "i32-lsb-stacked")):
        theirs = helpers.pack_to_int32(signed, bits, packed_dim=dim)
        words = Stored("I32", pack(layout, codes, bits))
        assert_same(words, stored(theirs))
        found = unpack(layout, stored(theirs).array, bits, shape)
        np.testing.assert_array_equal(found, codes)
        ours = torch.from_numpy(words.array.copy())
        back = helpers.unpack_from_int32(ours, bits, torch.Size(shape), packed_dim=dim)
        assert torch.equal(back, signed)


def weight_of(seed: int, rows: int, width: int) -> torch.nn.Linear:
    """Make a layer whose weights span several powers of two."""
    layer = torch.nn.Linear(width, rows, bias=False, dtype=torch.bfloat16)
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, width, generator=generator)
    values *= torch.exp2(torch.randint(-3, 3, (rows, 1), generator=generator).float())
    layer.weight.data = values.bfloat16()
    return layer


def least_and_most(layer: Any, args: Any) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ANN401 - theirs
    """Observe the weight in the blocks that its scales are for."""
    weight, shape = layer.weight.data, tuple(layer.weight_scale.shape)
    rows, width = weight.shape
    if args.strategy == "block":
        down, across = args.block_structure
        missing = (0, -width % across, 0, -rows % down)
        padded = torch.nn.functional.pad(weight, missing)
        tiles = padded.reshape(shape[0], down, shape[1], across)
        return tiles.amin((1, 3)), tiles.amax((1, 3))
    if args.strategy == "tensor":
        return weight.amin().reshape(shape), weight.amax().reshape(shape)
    groups = weight.reshape(rows, shape[1], -1)
    return groups.amin(-1), groups.amax(-1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("preset", CT)
def test_weights(preset: str, seed: int) -> None:
    scheme = quantization.preset_name_to_scheme(preset, ["Linear"])
    layer, args = weight_of(seed, 72, 256), scheme.weights
    quantization.initialize_module_for_quantization(layer, scheme)
    least, most = least_and_most(layer, args)
    second = None
    if "NVFP4" in preset:
        amax = layer.weight.data.abs().max().float()
        second = (448 * 6 / amax).reshape(1)
        layer.weight_global_scale.data = second
    scale, zero = numbers.calculate_qparams(least, most, args, global_scale=second)
    layer.weight_scale.data = scale.to(layer.weight_scale.dtype)
    if hasattr(layer, "weight_zero_point"):
        layer.weight_zero_point.data = zero.to(layer.weight_zero_point.dtype)
    compressors.compress_module(layer)
    tensors = {key: stored(each.data) for key, each in layer.state_dict().items()}
    compressors.decompress_module(layer)

    ours = CT[preset]
    assert isinstance(ours, Integer | Scaled)
    if preset == "FP8_BLOCK":
        assert ours.spread == Spread(128, 128)
    keys = {
        "codes": "weight_packed" if "weight_packed" in tensors else "weight",
        "scales": "weight_scale",
        "zeros": "weight_zero_point",
        "global_scale": "weight_global_scale",
        "weight_shape": "weight_shape",
    }
    roles = {role for role, _, _ in ours.parts(None)}
    parts = {
        role: tensors[key]
        for role, key in keys.items()
        if role in roles and key in tensors
    }
    made = dequantize(ours, parts, (72, 256))
    assert_same(from_float32(made, "BF16"), stored(layer.weight.data))
