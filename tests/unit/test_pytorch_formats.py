"""Models loaded from checkpoints of every family: layers swapped, outputs as they are.

The judge is a dense layer with the weight that the format's owner rebuilt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.golden_checkpoints import CHECKPOINTS, Checkpoint
from support.models import save, write_json

from qmanifest import CheckpointWeights, open_checkpoint
from qmanifest.packings.arrays import Stored

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch import nn
else:
    torch = pytest.importorskip("torch")
    from torch import nn

from qmanifest.backends.pytorch import QuantizedLinear, dequantize, load_into
from qmanifest.errors import BackendError

MATRICES = [made for made in CHECKPOINTS if len(made.shape) == 2]
each_family = pytest.mark.parametrize("made", MATRICES, ids=lambda made: made.file)


class Norm(nn.Module):
    """A weight of one dimension."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))


class Model(nn.Module):
    """A layer and a norm, named as in the checkpoints."""

    def __init__(self, made: Checkpoint) -> None:
        super().__init__()
        outputs, inputs = made.shape
        self.m = nn.Linear(inputs, outputs)
        self.norm = Norm(inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        result: torch.Tensor = self.m(x * self.norm.weight)
        return result


def loaded(folder: Path, made: Checkpoint, **tensors: Stored) -> Any:  # noqa: ANN401 - of any layers
    """Write the checkpoint, with other tensors besides, and load it."""
    made.write(folder)
    if tensors:
        save(folder, made.tensors() | tensors)
    model = Model(made)
    source = CheckpointWeights(open_checkpoint(folder))
    report = load_into(model, source, strict=True)
    assert report.complete
    assert report.swapped == ["m"]
    return model


@each_family
@torch.no_grad()
def test_forward_is_that_of_the_owners_weight(tmp_path: Path, made: Checkpoint) -> None:
    model = loaded(tmp_path, made)
    assert isinstance(model.m, QuantizedLinear)
    outputs, inputs = made.shape
    dense = torch.from_numpy(made.dense)
    found = dequantize(model.m.quantized_weight, torch.float32)
    assert found.shape == dense.shape
    assert torch.equal(found.to(model_dtype(made)), dense.to(model_dtype(made)))
    x = torch.randn(2, 3, inputs, generator=torch.Generator().manual_seed(1))
    bias = torch.arange(outputs) / 4
    assert model.m.bias is not None
    assert torch.equal(model.m.bias, bias)
    expected = x @ found.T + bias
    torch.testing.assert_close(model(x), expected)
    half = model.m(x.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), expected, rtol=0.02, atol=0.3)


def model_dtype(made: Checkpoint) -> torch.dtype:
    """In which dtype the owner rebuilt the weight."""
    owner = {"torchao_int8wo": torch.bfloat16}
    return owner.get(made.file, torch.float32)


@each_family
def test_state_comes_back(tmp_path: Path, made: Checkpoint) -> None:
    model = loaded(tmp_path / "a", made)
    again = loaded(tmp_path / "b", made)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    again.load_state_dict(state)
    assert torch.equal(
        dequantize(again.m.quantized_weight), dequantize(model.m.quantized_weight)
    )
    assert {name.partition(".")[0] for name in state} == {"m", "norm"}


def test_order_of_inputs_counts(tmp_path: Path) -> None:
    (made,) = (each for each in MATRICES if each.file.endswith("actorder"))
    one = loaded(tmp_path / "a", made)
    listed = made.tensors()["m.g_idx"]
    assert (np.diff(listed.array) < 0).any()
    turned = Stored("I32", np.ascontiguousarray(listed.array[::-1]))
    other = loaded(tmp_path / "b", made, **{"m.g_idx": turned})
    x = torch.ones(1, made.shape[1])
    assert not torch.allclose(one(x), other(x))


def test_gradients_reach_inputs_and_the_bias(tmp_path: Path) -> None:
    made = MATRICES[0]
    model = loaded(tmp_path, made)
    x = torch.ones(2, made.shape[1], requires_grad=True)
    model(x).sum().backward()
    dense = torch.from_numpy(made.dense)
    assert x.grad is not None
    torch.testing.assert_close(x.grad, dense.sum(0).expand(2, -1))
    assert torch.equal(model.m.bias.grad, torch.full((made.shape[0],), 2.0))


def test_stacks_of_experts_have_no_layer_to_go_to(tmp_path: Path) -> None:
    (made,) = (each for each in CHECKPOINTS if each.dialect == "mxfp4")

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate_up_proj = nn.Parameter(torch.zeros(2, 96, 6))

    model = nn.ModuleDict({"m": nn.ModuleDict({"experts": Experts()})})
    source = CheckpointWeights(open_checkpoint(made.write(tmp_path)))
    report = load_into(model, source)
    assert "only nn.Linear" in report.mismatched[made.weight]
    with pytest.raises(BackendError, match="the model was not changed"):
        load_into(model, source, strict=True)


def test_inputs_are_scaled_as_calibration_found(tmp_path: Path) -> None:
    (made,) = (each for each in MATRICES if each.dialect == "modelopt")
    numbers = np.linspace(0.5, 2, made.shape[1], dtype=np.float32)
    model = loaded(tmp_path, made, **{"m.pre_quant_scale": Stored("F32", numbers)})
    x = torch.ones(1, made.shape[1])
    expected = torch.from_numpy(numbers * made.dense).sum(1) + model.m.bias
    torch.testing.assert_close(model(x)[0], expected)
    assert torch.equal(
        model.state_dict()["m.pre_quant_scale"], torch.from_numpy(numbers)
    )


def test_values_that_are_not_decoded_leave_the_model_as_it_is(tmp_path: Path) -> None:
    tensors = {
        "m.trellis": Stored("I16", np.zeros((8, 8, 48), np.int16)),
        "m.suh": Stored("F16", np.ones(128, np.float16)),
        "m.svh": Stored("F16", np.ones(128, np.float16)),
    }
    folder = save(tmp_path, tensors)
    said = {"quant_method": "exl3", "version": "0.0.1", "bits": 3.0}
    write_json(folder / "config.json", {"quantization_config": said})
    model = nn.ModuleDict({"m": nn.Linear(128, 128, bias=False)})
    source = CheckpointWeights(open_checkpoint(folder))
    with pytest.raises(BackendError, match="values of exl3"):
        load_into(model, source, strict=True)
    report = load_into(model, source)
    assert "are not decoded" in report.mismatched["m.weight"]
    assert type(model["m"]) is nn.Linear


def test_low_rank_parts_leave_the_model_as_it_is(tmp_path: Path) -> None:
    (made,) = (each for each in MATRICES if each.dialect == "modelopt")
    model, lora = Model(made), np.ones((4, made.shape[1]), np.float32)
    made.write(tmp_path)
    save(tmp_path, made.tensors() | {"m.svdquant_lora_a": Stored("F32", lora)})
    source = CheckpointWeights(open_checkpoint(tmp_path))
    with pytest.raises(BackendError, match="changes what the layer computes"):
        load_into(model, source)
    assert type(model.m) is nn.Linear
