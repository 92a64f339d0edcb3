"""Layers that hold a quantized weight: what `nn.Linear` and `nn.Embedding` become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn

from qmanifest.backends.base import beside_the_weight
from qmanifest.backends.pytorch.ops import dequantize, quantized_matmul
from qmanifest.backends.pytorch.rebuilding import by_row, rebuild
from qmanifest.backends.pytorch.scheme_line import is_by_row
from qmanifest.backends.pytorch.weight import QuantizedWeight
from qmanifest.errors import BackendError
from qmanifest.schemes.floats import PRE_QUANT

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_BUFFERS: Final = {"codes": "weight"}
"""Roles whose buffer is not called after them."""
_MATRIX: Final = 2


class _Quantized(nn.Module):
    """Keeps the parts of a weight as buffers, named as in an MLX checkpoint.

    Parts that have no bearing on the weight, such as scales of activations, are left.
    """

    like: Tensor
    _weight: QuantizedWeight | None = None
    """The weight as it was asked for last, with what products keep about it."""

    def __init__(self, weight: QuantizedWeight, dtype: torch.dtype | None) -> None:
        super().__init__()
        if len(weight.shape) != _MATRIX:
            raise BackendError(
                f"a layer holds a weight of (rows, columns), found {list(weight.shape)}"
            )
        self.scheme, self.shape = weight.scheme, weight.shape
        beside = beside_the_weight(weight.scheme)
        self.roles = tuple(role for role in weight.parts if role not in beside)
        for role in self.roles:
            self.register_buffer(_BUFFERS.get(role, role), weight.parts[role])
        # Empty: its dtype is what `module.half()` and the like change.
        like = torch.empty(0, dtype=dtype or weight.dtype, device=weight.device)
        self.register_buffer("like", like, persistent=False)

    @property
    def quantized_weight(self) -> QuantizedWeight:
        """The weight; it shares the buffers' memory."""
        buffers: Any = self._buffers  # of parts, none is absent
        parts = {role: buffers[_BUFFERS.get(role, role)] for role in self.roles}
        if torch.compiler.is_compiling():
            return QuantizedWeight(self.scheme, self.shape, parts)
        last = self._weight
        if last is None or any(last.parts[role] is not parts[role] for role in parts):
            last = QuantizedWeight(self.scheme, self.shape, parts)
            self._weight = last
        return last

    def extra_repr(self) -> str:
        """Show the shape and the scheme."""
        return f"{self.shape[0]}, {self.shape[1]}, {self.scheme}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:  # noqa: FBT001, FBT002 - torch's signature
        """Move the parts, but never round them: scales keep their dtype."""
        before = {name: part for name, part in self._buffers.items() if name != "like"}
        self._weight = None  # else it would hold on to what is moved away
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call] # torch has no types here
        for name, part in before.items():
            after = self._buffers[name]
            if part is not None and after is not None and after.dtype != part.dtype:
                self._buffers[name] = part.to(after.device)
        return self


class QuantizedLinear(_Quantized):
    """`y = x @ weight.T + bias` with a quantized weight.

    Its `state_dict` has the packed codes as `weight`, beside `scales` and so on, and
    `bias` where the layer has one.
    """

    bias: nn.Parameter | None
    pre_quant_scale: Tensor | None

    def __init__(
        self, weight: QuantizedWeight, bias: Tensor | nn.Parameter | None = None
    ) -> None:
        super().__init__(weight, None)
        self.out_features, self.in_features = weight.shape
        if bias is not None and not isinstance(bias, nn.Parameter):
            bias = nn.Parameter(bias)
        self.register_parameter("bias", bias)
        self.register_buffer(PRE_QUANT.role, weight.parts.get(PRE_QUANT.role))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply `(..., in_features)`; the result has the dtype of `x`.

        Inputs are first multiplied by `pre_quant_scale`, where that is stored.
        """
        if self.pre_quant_scale is not None:
            x = x * self.pre_quant_scale.to(x.dtype)
        product = quantized_matmul(x, self.quantized_weight)
        return product if self.bias is None else product + self.bias.to(product.dtype)


class QuantizedEmbedding(_Quantized):
    """Rows of a quantized table, of which only those asked for are rebuilt."""

    def __init__(
        self,
        weight: QuantizedWeight,
        *,
        dtype: torch.dtype | None = None,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__(weight, dtype)
        self.num_embeddings, self.embedding_dim = weight.shape
        self.padding_idx = padding_idx

    def forward(self, indices: Tensor) -> Tensor:
        """Find the rows of `indices` of any shape: `(*indices.shape, columns)`.

        Their dtype is the one given when the layer was made, or the weight's own.

        Raises:
            IndexError: an index is negative or too large (on the CPU; other devices
                report it in their own way).

        """
        weight, flat = self.quantized_weight, indices.reshape(-1)
        if not is_by_row(weight.scheme):
            dense = dequantize(weight, self.like.dtype).index_select(0, flat)
            return dense.reshape(*indices.shape, weight.shape[1])
        rows = {
            role: part.index_select(0, flat) for role, part in by_row(weight).items()
        }
        dense = rebuild(weight.scheme, rows, weight.shape[1]).to(self.like.dtype)
        return dense.reshape(*indices.shape, weight.shape[1])

    def as_linear(self, x: Tensor) -> Tensor:
        """Multiply `(..., columns)` by the table, as a tied output layer does."""
        return quantized_matmul(x, self.quantized_weight)


def is_replaceable(layer: nn.Module) -> bool:
    """Whether a quantized layer can stand for `layer`.

    Only for `nn.Linear` and `nn.Embedding` themselves: a subclass may use its weight
    in ways that are not known here, and `max_norm` changes the table in use.
    """
    embedding = type(layer) is nn.Embedding and layer.max_norm is None
    return embedding or type(layer) is nn.Linear


def quantized_layer(
    layer: nn.Module, weight: QuantizedWeight, dtype: torch.dtype | None = None
) -> QuantizedLinear | QuantizedEmbedding:
    """Make the quantized layer that stands for `layer`, with its bias and mode.

    An embedding gives rows of `dtype`; by default of the dtype that `layer` gave.

    Raises:
        BackendError: the layer is not replaceable.

    """
    made: QuantizedLinear | QuantizedEmbedding
    if type(layer) is nn.Linear:
        made = QuantizedLinear(weight, layer.bias)
    elif type(layer) is nn.Embedding and is_replaceable(layer):
        dtype = dtype or layer.weight.dtype
        made = QuantizedEmbedding(weight, dtype=dtype, padding_idx=layer.padding_idx)
    else:
        raise BackendError(f"no quantized layer can stand for {type(layer).__name__}")
    return made.train(layer.training)
