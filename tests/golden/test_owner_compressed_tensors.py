"""compressed-tensors itself: its packing, and what it makes of what it compressed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.formats import CT, CT_ZERO
from support.golden import assert_same
from support.owners import owner, stored

from qmanifest.backends.reference import dequantize
from qmanifest.dtypes import FLOAT
from qmanifest.packings import pack, unpack
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.schemes import NO_ZERO, Integer, Scheme, plain_zero
from qmanifest.spreads import Spread

helpers = owner("compressed_tensors.compressors.pack_quantized.helpers")
quantization = owner("compressed_tensors.quantization")
numbers = owner("compressed_tensors.quantization.utils.helpers")
compressors = owner("compressed_tensors.compressors")
ROLES = {
    "weight": "codes",
    "weight_packed": "codes",
    "weight_scale": "scales",
    "weight_zero_point": "zeros",
    "weight_global_scale": "global_scale",
}


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


def compressed(layer: Any, scheme: Any) -> dict[str, Stored]:  # noqa: ANN401 - theirs
    """Quantize a layer by its extremes, compress it, and give its tensors by role."""
    quantization.initialize_module_for_quantization(layer, scheme)
    least, most = least_and_most(layer, scheme.weights)
    second = None
    if hasattr(layer, "weight_global_scale"):
        amax = layer.weight.data.abs().max().float()
        second = (448 * 6 / amax).reshape(1)
        layer.weight_global_scale.data = second
    scale, zero = numbers.calculate_qparams(
        least, most, scheme.weights, global_scale=second
    )
    layer.weight_scale.data = scale.to(layer.weight_scale.dtype)
    if hasattr(layer, "weight_zero_point"):
        layer.weight_zero_point.data = zero.to(layer.weight_zero_point.dtype)
    compressors.compress_module(layer)
    tensors = {key: stored(each.data) for key, each in layer.state_dict().items()}
    return {role: tensors[key] for key, role in ROLES.items() if key in tensors}


def assert_rebuilt(layer: Any, ours: Scheme, tensors: dict[str, Stored]) -> None:  # noqa: ANN401 - theirs
    """Compare with what the library decompresses the layer to."""
    roles = {role for role, _, _ in ours.parts(None)}
    parts = {role: part for role, part in tensors.items() if role in roles}
    compressors.decompress_module(layer)
    theirs = stored(layer.weight.data)
    made = dequantize(ours, parts, theirs.shape)
    assert_same(from_float32(made, theirs.dtype), theirs)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("preset", CT)
def test_presets(preset: str, seed: int) -> None:
    scheme = quantization.preset_name_to_scheme(preset, ["Linear"])
    layer = weight_of(seed, 72, 256)
    assert_rebuilt(layer, CT[preset], compressed(layer, scheme))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [32, 0])
@pytest.mark.parametrize("bits", range(2, 9))
def test_packed_weights(
    bits: int, group: int, *, symmetric: bool, dtype: torch.dtype
) -> None:
    args = quantization.QuantizationArgs(
        num_bits=bits, symmetric=symmetric, group_size=group or -1
    )
    scheme = quantization.QuantizationScheme(targets=["Linear"], weights=args)
    layer = weight_of(bits, 44, 96).to(dtype)
    zero = NO_ZERO if symmetric else CT_ZERO
    ours = Integer(
        *(bits, "i32-lsb", "offset", Spread(1, group), FLOAT, zero),
        *("sequential", "scale"),
    )
    assert_rebuilt(layer, ours, compressed(layer, scheme))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_bytes(bits: int, *, symmetric: bool) -> None:
    weights = quantization.QuantizationArgs(
        num_bits=bits, symmetric=symmetric, group_size=-1
    )
    inputs = quantization.QuantizationArgs(num_bits=8, strategy="token", dynamic=True)
    scheme = quantization.QuantizationScheme(
        targets=["Linear"], weights=weights, input_activations=inputs
    )
    layer = weight_of(bits, 44, 96)
    tensors = compressed(layer, scheme)
    zero = NO_ZERO if symmetric else plain_zero("code", ("I8",))
    ours = Integer(
        *(bits, "i8", "signed", Spread(1, 0), FLOAT, zero, "sequential", "scale")
    )
    assert tensors["codes"].dtype == "I8"
    assert ("zeros" in tensors) is not symmetric
    assert_rebuilt(layer, ours, tensors)
