"""Quantized layers: what they compute, save, load and survive."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from qmanifest.backends import reference
from qmanifest.errors import BackendError
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Float32, Stored
from qmanifest.schemes import Affine, Microscaling
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")

from qmanifest.backends.pytorch import (
    QuantizedEmbedding,
    QuantizedLinear,
    QuantizedWeight,
    weight_from_parts,
)
from qmanifest.backends.pytorch.modules import quantized_layer

SCHEME = Affine(4, 32, ("F32",), "u32-lsb")
NVFP4 = Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb")


def make(shape: tuple[int, int] = (10, 64)) -> tuple[QuantizedWeight, Float32]:
    """Quantize a random weight; find it rebuilt, too."""
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    made = quantize_affine(Stored("F32", values), 4, 32)
    words = Stored("U32", PACKINGS["u32-lsb"].pack(made.codes, 4))
    parts = {"codes": words, "scales": made.scales, "biases": made.biases}
    dense = reference.dequantize(SCHEME, parts, shape)
    return weight_from_parts(SCHEME, shape, parts), dense


def global_scale_weight() -> QuantizedWeight:
    parts = {
        "codes": Stored("U32", np.full((6, 4), 0x12345678, np.uint32)),
        "scales": Stored("U8", np.arange(12, dtype=np.uint8).reshape(6, 2) + 40),
        "global_scale": Stored("F32", np.array([100], np.float32)),
    }
    return weight_from_parts(NVFP4, (6, 32), parts)


def test_linear_is_the_dense_linear() -> None:
    weight, dense = make()
    bias = torch.randn(10)
    layer = QuantizedLinear(weight, bias)
    x = torch.randn(2, 3, 64, requires_grad=True)
    assert layer.bias is not None
    twin = torch.nn.Linear(64, 10)
    twin.load_state_dict({"weight": torch.from_numpy(dense), "bias": bias})
    torch.testing.assert_close(layer(x), twin(x))
    found = torch.autograd.grad(layer(x).square().sum(), (x, layer.bias))
    wanted = torch.autograd.grad(twin(x).square().sum(), (x, twin.bias))
    # Products are summed in another order, and the square carries that on.
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-5)
    assert (layer.in_features, layer.out_features) == (64, 10)
    assert repr(layer) == f"QuantizedLinear(10, 64, {SCHEME})"


def test_state_dict_has_the_names_of_a_checkpoint() -> None:
    weight, _ = make()
    assert set(QuantizedLinear(weight).state_dict()) == {"weight", "scales", "biases"}
    with_bias = QuantizedLinear(weight, torch.zeros(10))
    assert set(with_bias.state_dict()) == {"weight", "scales", "biases", "bias"}
    embedding = QuantizedEmbedding(global_scale_weight())
    assert set(embedding.state_dict()) == {"weight", "scales", "global_scale"}


def test_state_dict_loads_the_unsigned_words_of_a_file() -> None:
    weight, dense = make()
    layer, empty = QuantizedLinear(weight), copy.deepcopy(QuantizedLinear(weight))
    for buffer in empty.buffers():
        buffer.zero_()
    state = layer.state_dict()
    state["weight"] = state["weight"].view(torch.uint32)
    empty.load_state_dict(state)
    x = torch.eye(64)
    torch.testing.assert_close(empty(x), torch.from_numpy(dense.T.copy()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_changing_the_model_dtype_changes_no_weight(dtype: torch.dtype) -> None:
    weight, dense = make()
    layer = QuantizedLinear(weight, torch.zeros(10)).to(dtype)
    assert layer.quantized_weight.dtype == torch.float32
    assert torch.equal(layer.get_buffer("scales"), weight.parts["scales"])
    assert layer.bias is not None
    assert layer.bias.dtype == dtype
    x = torch.eye(64, dtype=dtype)
    assert torch.equal(layer(x), torch.from_numpy(dense.T.copy()).to(dtype))
    embedding = QuantizedEmbedding(weight).to(dtype)
    rows = embedding(torch.arange(10))
    assert torch.equal(rows, torch.from_numpy(dense).to(dtype))


def test_moving_and_rounding_at_once() -> None:
    weight, _ = make()
    layer = QuantizedLinear(weight).to("meta", torch.float16)
    assert layer.quantized_weight.device == torch.device("meta")
    assert layer.quantized_weight.dtype == torch.float32


def test_layers_copy_and_pickle() -> None:
    weight, _ = make()
    layer = QuantizedLinear(weight, torch.ones(10))
    x = torch.randn(3, 64)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):  # noqa: S301 - our own bytes
        assert torch.equal(again(x), layer(x))
        assert again.scheme == SCHEME


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_embedding_rebuilds_the_rows_asked_for(shape: tuple[int, ...]) -> None:
    weight, dense = make()
    layer = QuantizedEmbedding(weight, padding_idx=0)
    indices = torch.randint(10, shape)
    expected = torch.from_numpy(dense[indices.numpy()])
    assert torch.equal(layer(indices), expected)
    assert torch.equal(layer(indices.int()), expected)
    assert (layer.num_embeddings, layer.embedding_dim) == (10, 64)


def test_embedding_with_a_global_scale() -> None:
    weight = global_scale_weight()
    from qmanifest.backends.pytorch import dequantize

    layer = QuantizedEmbedding(weight, dtype=torch.bfloat16)
    expected = dequantize(weight, torch.bfloat16)[[5, 1]]
    assert torch.equal(layer(torch.tensor([5, 1])), expected)


@pytest.mark.parametrize("index", [-1, 10])
def test_embedding_refuses_an_index_outside(index: int) -> None:
    with pytest.raises(IndexError):
        QuantizedEmbedding(make()[0])(torch.tensor([index]))


def test_embedding_as_output_layer() -> None:
    weight, dense = make()
    x = torch.randn(3, 64)
    expected = x @ torch.from_numpy(dense).T
    torch.testing.assert_close(QuantizedEmbedding(weight).as_linear(x), expected)


def test_layers_are_matrices() -> None:
    weight, _ = make()
    parts = {role: part[None] for role, part in weight.parts.items()}
    experts = QuantizedWeight(SCHEME, (1, 10, 64), parts)
    for layer in (QuantizedLinear, QuantizedEmbedding):
        with pytest.raises(BackendError, match=r"found \[1, 10, 64\]"):
            layer(experts)


def test_only_known_layers_are_replaced() -> None:
    with pytest.raises(BackendError, match="can stand for Conv1d"):
        quantized_layer(torch.nn.Conv1d(1, 1, 1), make()[0])
