"""torchao's own checkpoints of small layers, in every class that is decoded here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torchao")

import torch
from support import live_torchao as live
from support.owners import owner

from qmanifest import CheckpointWeights, open_checkpoint, validate
from qmanifest.backends.reference import dequantize

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")  # of deprecations in their code
KINDS = ("int8", "int4-groups", "float8", "nvfp4")
NAMES = ("model.layers.0.up_proj.weight", "model.layers.1.up_proj.weight")


def weights(n: int, k: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return {
        name: torch.randn(n, k, generator=generator).bfloat16() / 50 for name in NAMES
    }


def assert_same(folder: Path, tensors: dict[str, Any]) -> None:
    report = validate(folder, deep=True)
    assert [f.message for f in report.findings if f.severity != "note"] == []
    source = CheckpointWeights(open_checkpoint(folder))
    assert source.names() == NAMES
    for name in NAMES:
        scheme, shape = source.weight(name)
        ours = dequantize(scheme, source.stored(name), shape)
        theirs = tensors[name].dequantize().bfloat16().float().numpy()
        np.testing.assert_array_equal(live.as_bfloat16(ours), theirs)


@pytest.mark.parametrize("shape", [(64, 256), (144, 96)])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_one_config(
    kind: str, shape: tuple[int, int], tmp_path: Path
) -> None:
    config = live.named(kind)
    tensors = {n: live.quantize(w, config) for n, w in weights(*shape).items()}
    assert_same(live.save(tmp_path, tensors, config, {"model_type": "x"}), tensors)


@pytest.mark.parametrize("element", ["float8_e4m3fn", "float4_e2m1fn_x2"])
def test_microscaling(element: str, tmp_path: Path) -> None:
    kind = owner("torchao.prototype.mx_formats.mx_tensor").MXTensor
    config = live.mx_formats.MXDynamicActivationMXWeightConfig()
    forms = dict(zip(NAMES, (False, True), strict=True))
    dtype = getattr(torch, element)
    tensors = {
        name: kind.to_mx(weight, dtype, block_size=32, is_swizzled_scales=forms[name])
        for name, weight in weights(130, 320).items()
    }
    assert_same(live.save(tmp_path, tensors, config, {"model_type": "x"}), tensors)


def test_configs_by_name(tmp_path: Path) -> None:
    kinds = dict(zip(NAMES, ("int8", "int4-groups"), strict=True))
    tensors = {
        name: live.quantize(weight, live.named(kinds[name]))
        for name, weight in weights(64, 256).items()
    }
    by_name = {
        "model.layers.0.up_proj": live.named("int8"),
        r"re:model\.layers\.\d+\.up_proj": live.named("int4-groups"),
    }
    config = live.quantization.FqnToConfig(by_name)
    assert_same(live.save(tmp_path, tensors, config, {"model_type": "x"}), tensors)
