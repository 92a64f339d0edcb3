"""Transformers itself: FP8 in blocks, FP4 experts, gpt-oss's blocks, Metal's words."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
import torch
from support.golden import assert_same
from support.owners import owner, stored

from qmanifest.backends.reference import dequantize
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.schemes import Affine
from qmanifest.schemes.floats import E8M0, WIDE, fp8_blocks, fp8_whole, mxfp4

fp8 = owner("transformers.integrations.finegrained_fp8")
metal = owner("transformers.integrations.metal_quantization")
gpt_oss = owner("transformers.integrations.mxfp4")
SEED: Final = 7


def random(*shape: int) -> torch.Tensor:
    """Draw weights that span several powers of two."""
    generator = torch.Generator().manual_seed(SEED)
    spans = torch.randint(-3, 3, (shape[-2], 1), generator=generator).float()
    return torch.randn(*shape, generator=generator) * torch.exp2(spans)


class Asked:
    """What transformers' quantizer asks of its own config."""

    def __init__(self, block: tuple[int, int] | None, scale: str) -> None:
        self.weight_block_size = block
        self.scale_fmt = scale
        self.quantization_config = self


def fp8_parts(
    weight: torch.Tensor, block: tuple[int, int] | None, scale: str
) -> tuple[Any, Any]:
    """Quantize as transformers does, to codes and scales."""
    made = fp8.Fp8Quantize(Asked(block, scale)).convert({"a.weight": weight})
    return made["a.weight"], made["a.weight_scale_inv"]


def rebuilt(codes: torch.Tensor, scales: torch.Tensor) -> Stored:
    """Dequantize as transformers does."""
    step = fp8.Fp8Dequantize(Asked(None, "float"))
    return stored(step._dequantize_one(codes, scales, torch.float32))  # noqa: SLF001 - theirs


@pytest.mark.parametrize("shape", [(64, 96), (3, 64, 96)])
@pytest.mark.parametrize("scale", ["float", "ue8m0"])
@pytest.mark.parametrize("block", [(32, 32), (64, 16), (1, 32)])
def test_fp8_blocks(block: tuple[int, int], scale: str, shape: tuple[int, ...]) -> None:
    codes, scales = fp8_parts(random(*shape), block, scale)
    scheme = fp8_blocks(*block, WIDE, "float")
    if scale == "ue8m0":
        scheme = fp8_blocks(*block, E8M0, "e8m0")
    parts = {"codes": stored(codes), "scales": stored(scales)}
    made = dequantize(scheme, parts, shape)
    assert_same(Stored("F32", made), rebuilt(codes, scales))


def test_fp8_with_one_scale() -> None:
    codes, scales = fp8_parts(random(48, 32), None, "float")
    whole = stored(scales.reshape(()))
    made = dequantize(
        fp8_whole("scalar"), {"codes": stored(codes), "scales": whole}, (48, 32)
    )
    assert_same(Stored("F32", made), rebuilt(codes, scales))


@pytest.mark.parametrize("scale", ["float", "ue8m0"])
@pytest.mark.parametrize("shape", [(16, 64), (2, 16, 64)])
def test_fp4_experts(shape: tuple[int, ...], scale: str) -> None:
    rng = np.random.default_rng(SEED)
    words = (*shape[:-1], shape[-1] // 2)
    codes = torch.from_numpy(rng.integers(-128, 128, words).astype(np.int8))
    exponents = rng.integers(-4, 4, (*shape[:-1], shape[-1] // 32))
    scales = torch.from_numpy(np.exp2(exponents).astype(np.float32))
    scheme = mxfp4("i8-lsb", WIDE, "float")
    if scale == "ue8m0":
        scales, scheme = scales.to(torch.float8_e8m0fnu), mxfp4("i8-lsb", E8M0, "e8m0")
    parts = {"codes": stored(codes), "scales": stored(scales)}
    assert_same(Stored("F32", dequantize(scheme, parts, shape)), rebuilt(codes, scales))


@pytest.mark.parametrize("experts", [1, 3])
def test_gpt_oss_blocks(experts: int) -> None:
    rng = np.random.default_rng(SEED)
    blocks = rng.integers(0, 256, (experts, 6, 3, 16)).astype(np.uint8)
    scales = rng.integers(100, 150, (experts, 6, 3)).astype(np.uint8)
    theirs = gpt_oss._convert_moe_packed_tensors(  # noqa: SLF001 - theirs
        torch.from_numpy(blocks), torch.from_numpy(scales)
    )
    parts = {"codes": Stored("U8", blocks), "scales": Stored("U8", scales)}
    made = dequantize(mxfp4("u8-nibbles-blocks", E8M0, "e8m0"), parts, (experts, 6, 96))
    turned = np.ascontiguousarray(made.swapaxes(-1, -2))
    assert_same(from_float32(turned, "BF16"), stored(theirs))


@pytest.mark.parametrize("group", [32, 64])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_metal(bits: int, group: int) -> None:
    words, scales, biases = metal._affine_quantize_tensor(  # noqa: SLF001 - theirs
        random(24, 128), group, bits
    )
    theirs = metal._affine_dequantize_tensor(  # noqa: SLF001 - theirs
        words, scales, biases, group, bits
    )
    parts = {
        "codes": Stored("U32", words.numpy()),
        "scales": stored(scales),
        "biases": stored(biases),
    }
    made = dequantize(Affine(bits, group, ("F32",), "u32-lsb"), parts, (24, 128))
    assert_same(Stored("F32", made), stored(theirs))
