"""torchao itself: what its tensors make of their own parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
import torch
from support.formats import (
    TORCHAO_FP8,
    TORCHAO_INT8,
    TORCHAO_INTX,
    TORCHAO_MX,
    TORCHAO_NVFP4,
)
from support.golden import assert_same
from support.owners import DTYPES, owner, stored

from qmanifest.backends.reference import dequantize
from qmanifest.packings.arrays import from_float32

if TYPE_CHECKING:
    from qmanifest.schemes import Integer, Scaled

quantization = owner("torchao.quantization")
mx = owner("torchao.prototype.mx_formats")

SCHEMES: Final[dict[str, tuple[Any, Integer | Scaled]]] = {
    "int8": (quantization.Int8WeightOnlyConfig, TORCHAO_INT8),
    "intx": (quantization.IntxWeightOnlyConfig, TORCHAO_INTX),
    "float8": (quantization.Float8WeightOnlyConfig, TORCHAO_FP8),
    "nvfp4": (mx.NVFP4WeightOnlyConfig, TORCHAO_NVFP4),
}
ROLES: Final = {
    "codes": "qdata",
    "scales": "scale",
    "zeros": "zero_point",
    "global_scale": "per_tensor_scale",
}


def parts_of(tensor: Any, scheme: Integer | Scaled) -> dict[str, Any]:  # noqa: ANN401 - theirs
    promised = {role for role, _, _ in scheme.parts(None)}
    found = {role: getattr(tensor, ROLES[role], None) for role in promised & set(ROLES)}
    return {role: stored(part) for role, part in found.items() if part is not None}


def compare(tensor: Any, scheme: Integer | Scaled, shape: tuple[int, int]) -> None:  # noqa: ANN401 - theirs
    parts, dtype = parts_of(tensor, scheme), DTYPES[tensor.dtype]
    theirs = stored(tensor.dequantize().to(tensor.dtype))
    made = dequantize(scheme, parts, shape)
    assert_same(from_float32(made, dtype), theirs)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("shape", [(64, 256), (144, 96)])
@pytest.mark.filterwarnings("ignore")  # of deprecations in their own code
def test_weights(name: str, shape: tuple[int, int]) -> None:
    config, scheme = SCHEMES[name]
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(shape[1], shape[0], bias=False, dtype=torch.bfloat16)
    )
    if name == "intx":
        granularity = owner("torchao.quantization.granularity").PerGroup(32)
        int4 = vars(torch)["int4"]  # which torch's types leave out
        config = config(weight_dtype=int4, granularity=granularity)
    else:
        config = config()
    quantization.quantize_(model, config)
    compare(model[0].weight, scheme, shape)


@pytest.mark.parametrize("swizzled", [False, True])
@pytest.mark.parametrize("element", ["e4m3", "e2m1"])
@pytest.mark.filterwarnings("ignore")
def test_microscaling(element: str, *, swizzled: bool) -> None:
    tensors = owner("torchao.prototype.mx_formats.mx_tensor")
    torch.manual_seed(0)
    weight = torch.randn(130, 320).bfloat16()
    if element == "e4m3":
        kind, pack = torch.float8_e4m3fn, "f8-e4m3"
    else:
        kind, pack = torch.float4_e2m1fn_x2, "u8-nibbles"
    made = tensors.MXTensor.to_mx(
        weight, kind, block_size=32, is_swizzled_scales=swizzled
    )
    spread = replace(TORCHAO_MX.spread, form="swizzled" if swizzled else "table")
    scheme = replace(TORCHAO_MX, element=element, pack=pack, spread=spread)
    compare(made, scheme, (130, 320))
