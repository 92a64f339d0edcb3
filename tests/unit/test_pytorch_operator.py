"""The product as one operator, for `torch.compile` and `torch.export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qmanifest.errors import BackendError
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = pytest.importorskip("torch")
    from torch import Tensor, nn

from qmanifest.backends.pytorch import (
    QuantizedEmbedding,
    QuantizedLinear,
    QuantizedWeight,
    dequantize,
    quantized_matmul,
)
from qmanifest.backends.pytorch.scheme_line import parse_scheme


def make(bits: int, rows: int, width: int, dtype: torch.dtype) -> QuantizedWeight:
    """Make a weight of random codes in groups of 32."""
    words = torch.randint(-(2**31), 2**31 - 1, (rows, width * bits // 32))
    scales, biases = (torch.randn(rows, width // 32).to(dtype) for _ in range(2))
    parts = {"codes": words.int(), "scales": scales, "biases": biases}
    code = {torch.float32: "F32", torch.float16: "F16"}[dtype]
    return QuantizedWeight(Affine(bits, 32, (code,), "u32-lsb"), (rows, width), parts)


class Tiny(nn.Module):
    """Embeds and mixes."""

    def __init__(self) -> None:
        super().__init__()
        table = make(8, 10, 64, torch.float16)
        self.embed = QuantizedEmbedding(table, dtype=torch.float32)
        self.mix = QuantizedLinear(make(4, 24, 64, torch.float32), torch.randn(24))

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = self.mix(self.embed(tokens))
        return mixed.relu()


TOKENS = torch.arange(6).reshape(2, 3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_model_is_compiled_whole(backend: str) -> None:
    model = Tiny()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(compiled(TOKENS), model(TOKENS))


def test_gradient_of_a_compiled_product() -> None:
    weight = make(4, 24, 64, torch.float32)
    x = torch.randn(3, 64, requires_grad=True)

    def loss(x: Tensor) -> Tensor:
        return quantized_matmul(x, weight).square().sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    (found,) = torch.autograd.grad(compiled(x), x)
    (expected,) = torch.autograd.grad(loss(x), x)
    torch.testing.assert_close(found, expected)


def test_model_is_exported() -> None:
    model = Tiny()
    exported = torch.export.export(model, (TOKENS,))
    assert torch.equal(exported.module()(TOKENS), model(TOKENS))
    targets = [str(node.target) for node in exported.graph.nodes]
    assert targets.count("qmanifest.product.default") == 1


def test_layer_is_exported_for_any_number_of_inputs() -> None:
    layer, x = QuantizedLinear(make(4, 24, 64, torch.float32)), torch.randn(4, 64)
    inputs = torch.export.Dim("inputs")
    exported = torch.export.export(layer, (x,), dynamic_shapes=({0: inputs},))
    for count in (3, 40):
        x = torch.randn(count, 64)
        assert torch.equal(exported.module()(x), layer(x))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_operator_keeps_torch_rules(dtype: torch.dtype, transposed: bool) -> None:  # noqa: FBT001 - a case
    weight = make(4, 24, 64, torch.float16)
    x = torch.randn(2, 3, 24 if transposed else 64, dtype=dtype, requires_grad=True)
    parts, line = list(weight.parts.values()), str(weight.scheme)
    torch.library.opcheck(
        torch.ops.qmanifest.product.default, (x, parts, line, [24, 64], transposed)
    )


def test_product_is_that_of_the_whole_weight() -> None:
    weight = make(4, 24, 64, torch.float16)
    x = torch.randn(2, 64, dtype=torch.float64)
    expected = x @ dequantize(weight).double().T
    torch.testing.assert_close(quantized_matmul(x, weight), expected)


@pytest.mark.parametrize(
    "scheme",
    [
        Affine(4, 64, ("F16", "BF16"), "u32-lsb"),
        Affine(4, 32, ("F32",), "u8-nibbles"),
        ZeroPoint(3, 32, ("F32",), ("F16", "U8"), "u32-lsb"),
        Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
        Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
    ],
    ids=str,
)
def test_lines_are_read_back(scheme: Scheme) -> None:
    assert parse_scheme(str(scheme)) == scheme


@pytest.mark.parametrize(
    "line",
    [
        *("", "affine", "affine(bits=4)", "dense(bits=4, group=2, scale=F16, pack=p)"),
        "affine(bits=x, group=64, scale=F16, pack=u32-lsb)",
        "affine(bits=4, group=64, scale=F16, pack=u32-lsb",
        "affine(group=64, bits=4, scale=F16, pack=u32-lsb)",
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(BackendError, match="no scheme is written"):
        parse_scheme(line)
