"""bitsandbytes itself: 4 bits in every storage and nesting, and int8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
import torch
from support.formats import BNB_INT8
from support.golden import assert_same
from support.owners import DTYPES, owner, stored

from qmanifest.backends.reference import dequantize
from qmanifest.layouts import FLAT
from qmanifest.packings import pack
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.schemes import Codebook

if TYPE_CHECKING:
    from qmanifest.layouts import FlatLayout

functional = owner("bitsandbytes.functional")
STORAGES = {code: dtype for dtype, code in DTYPES.items()}


@pytest.mark.parametrize("layout", FLAT, ids=lambda layout: layout.id)
@pytest.mark.parametrize("nested", [0, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("table", ["nf4", "fp4"])
def test_four_bits(
    table: Literal["nf4", "fp4"],
    dtype: torch.dtype,
    nested: int,
    layout: FlatLayout,
) -> None:
    generator = torch.Generator().manual_seed(nested)
    weight = torch.randn(40, 128, generator=generator).to(dtype)
    words, state = functional.quantize_4bit(
        weight,
        blocksize=64,
        compress_statistics=bool(nested),
        quant_type=table,
        quant_storage=STORAGES[layout.word_dtype],
    )
    tensors = state.as_dict(packed=True)
    parts = {"codes": stored(words), "scales": stored(tensors["absmax"])}
    parts["quant_map"] = stored(tensors["quant_map"])
    parts["quant_state"] = stored(tensors[f"quant_state.bitsandbytes__{table}"])
    if nested:
        for role in ("nested_absmax", "nested_quant_map"):
            parts[role] = stored(tensors[role])
    made = dequantize(Codebook(table, 64, nested, layout.id), parts, (40, 128))
    theirs = functional.dequantize_4bit(words.view(torch.uint8), state)
    assert_same(from_float32(made, DTYPES[dtype]), stored(theirs))
    octets = parts["codes"].array.reshape(-1).view(np.uint8)
    codes = np.stack([octets >> 4, octets & 15], axis=-1).reshape(40, 128)
    packed = Stored(layout.word_dtype, pack(layout.id, codes, 4))
    assert_same(packed, parts["codes"])


@pytest.mark.parametrize("shape", [(48, 192), (5, 33)])
def test_int8(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(*shape, generator=generator).half()
    codes, absmax, _ = functional.int8_vectorwise_quant(weight)
    parts = {"codes": stored(codes), "scales": stored(absmax)}
    theirs = functional.int8_vectorwise_dequant(codes, absmax)
    made = Stored("F32", dequantize(BNB_INT8, parts, shape))
    assert_same(made, stored(theirs))
