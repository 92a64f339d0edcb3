"""Products without the operator: the same result, and never where somebody watches."""

from __future__ import annotations

import copy
import io
from typing import TYPE_CHECKING, Any

import pytest

from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch
    from torch import Tensor
else:
    torch = pytest.importorskip("torch")
    from torch import Tensor

from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import BaseTorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from qmanifest.backends.pytorch import (
    QuantizedLinear,
    QuantizedWeight,
    dequantize,
    ops,
    quantized_matmul,
)
from qmanifest.backends.pytorch.direct import is_unwatched


def make(bits: int = 4, rows: int = 6, width: int = 64) -> QuantizedWeight:
    """Make a weight of random codes in groups of 32."""
    words = torch.randint(-(2**31), 2**31 - 1, (rows, width * bits // 32))
    scales, biases = (torch.randn(rows, width // 32) for _ in range(2))
    parts = {"codes": words.int(), "scales": scales, "biases": biases}
    return QuantizedWeight(Affine(bits, 32, ("F32",), "u32-lsb"), (rows, width), parts)


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types here
    """Counts the calls of our operator."""

    calls = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        self.calls += func is torch.ops.qmanifest.product.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("count", [1, 3, 30])
def test_operator_gives_the_same_bits(count: int, dtype: torch.dtype) -> None:
    weight, x = make(), torch.randn(2, count, 64).to(dtype)
    parts, line = list(weight.parts.values()), str(weight.scheme)
    called = torch.ops.qmanifest.product(x, parts, line, [6, 64], False)  # noqa: FBT003 - operators take no keywords
    assert is_unwatched(x, parts)
    assert torch.equal(quantized_matmul(x, weight), called)


def test_gradients_need_the_operator() -> None:
    weight, x = make(), torch.randn(2, 64, requires_grad=True)
    parts = weight.parts.values()
    assert not is_unwatched(x, parts)
    with torch.no_grad():
        assert is_unwatched(x, parts)
    assert not is_unwatched(x.detach(), [torch.ones(1, requires_grad=True)])
    (gradient,) = torch.autograd.grad(quantized_matmul(x, weight).sum(), x)
    torch.testing.assert_close(gradient, dequantize(weight).sum(0).expand(2, -1))


def test_modes_see_the_operator() -> None:
    weight, x = make(), torch.randn(2, 64)
    with Operators() as seen:  # type: ignore[no-untyped-call] # torch has no types here
        quantized_matmul(x, weight)
    assert seen.calls == 1
    with BaseTorchFunctionMode():
        assert not is_unwatched(x, ())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_unwatched(x, ())
    with forward_ad.dual_level():
        assert not is_unwatched(x, ())


def test_other_tensors_need_the_operator() -> None:
    class Special(Tensor):
        """A tensor with rules of its own."""

    plain = torch.zeros(2, 64)
    assert not is_unwatched(plain.as_subclass(Special), ())
    assert not is_unwatched(plain, [plain.as_subclass(Special)])
    assert not is_unwatched(plain.to("meta"), ())


@pytest.mark.filterwarnings("ignore:.*jit.trace.*:DeprecationWarning")
def test_transforms_see_the_operator() -> None:
    weight = make()
    unwatched: list[bool] = []

    def watched(x: Tensor) -> Tensor:
        unwatched.append(is_unwatched(x, ()))
        return x * 2

    torch.func.vmap(watched)(torch.randn(2, 64))
    trace: Any = torch.jit.trace
    trace(watched, torch.randn(2, 64), check_trace=False)
    assert unwatched == [False, False]
    graph = make_fx(lambda x: quantized_matmul(x, weight))(torch.randn(2, 64))
    assert "qmanifest.product" in graph.code
    x = torch.randn(2, 64)
    assert torch.equal(graph(x), quantized_matmul(x, weight))


def test_parts_that_are_replaced_are_not_kept() -> None:
    pytest.importorskip("numba")
    weight, other, x = make(), make(), torch.randn(1, 64)
    before = quantized_matmul(x, weight)
    parts = dict(weight.parts)
    changed = QuantizedWeight(weight.scheme, weight.shape, parts)
    assert torch.equal(quantized_matmul(x, changed), before)
    assert changed.kept
    parts.update(other.parts)
    assert torch.equal(quantized_matmul(x, changed), quantized_matmul(x, other))
    parts["scales"].mul_(2)
    expected = x.double() @ dequantize(changed).double().T
    product = quantized_matmul(x, changed).double()
    torch.testing.assert_close(product, expected, atol=1e-4, rtol=1e-5)


def test_layers_keep_their_weight_until_it_changes() -> None:
    layer, x = QuantizedLinear(make()), torch.randn(1, 64)
    before = layer(x)
    assert layer.quantized_weight is layer.quantized_weight
    copied = copy.deepcopy(layer)
    copied.get_buffer("scales").mul_(2)
    assert torch.equal(layer(x), before)
    assert not torch.equal(copied(x), before)
    layer.load_state_dict(copied.state_dict())
    assert torch.equal(layer(x), copied(x))
    other = QuantizedLinear(make())
    layer.load_state_dict(other.state_dict(), assign=True)
    assert torch.equal(layer(x), other(x))
    assert layer.to("meta").quantized_weight.device == torch.device("meta")


def test_layers_are_saved_whole_after_a_product() -> None:
    layer, x, file = QuantizedLinear(make()), torch.randn(1, 64), io.BytesIO()
    before = layer(x)
    torch.save(layer, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert torch.equal(loaded(x), before)


def test_blocks_need_no_operator_either(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, x = make(), torch.randn(ops.TILED_INPUTS + 1, 64)
    expected = quantized_matmul(x, weight)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ops, "_product", refuse)
    assert torch.equal(quantized_matmul(x, weight), expected)
