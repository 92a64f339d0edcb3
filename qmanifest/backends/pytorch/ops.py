"""Rebuilding and multiplying quantized weights, a block of rows at a time.

On the CPU, compiled kernels do it where they can (`compiled`); the rest, and all other
devices, compute in torch (`rebuilding`): correct there, and never measured.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from qmanifest.backends.pytorch.compiled import packed, packed_matrix
from qmanifest.backends.pytorch.direct import is_unwatched
from qmanifest.backends.pytorch.rebuilding import by_row, rebuild
from qmanifest.backends.pytorch.scheme_line import is_by_row, parse_line, write_line
from qmanifest.backends.pytorch.weight import QuantizedWeight
from qmanifest.backends.pytorch.whole import rebuild_whole
from qmanifest.errors import BackendError
from qmanifest.packings.arrays import row_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_ELEMENTS: Final = 1 << 20
"""Float32 elements rebuilt at a time, and as many bytes of other dtypes: what a product
needs beside its input and its result."""

TILED_INPUTS: Final = 24
"""Up to so many inputs meet a weight that stays packed; for more, rebuilt blocks."""
NARROW_INPUTS: Final = 16
"""From so many bfloat16 inputs on, bfloat16 weights are multiplied as such."""

_MATRIX: Final = 2


def dequantize(weight: QuantizedWeight, dtype: torch.dtype | None = None) -> Tensor:
    """Rebuild a whole weight.

    Args:
        weight: of any scheme and rank.
        dtype: of the result; by default `weight.dtype`, in which the result equals the
            numpy reference bit for bit. Another dtype is rounded to at the end.

    Returns:
        `weight.shape`, on the weight's device.

    """
    rows, width = math.prod(weight.shape[:-1]), weight.shape[-1]
    dtype = dtype or weight.dtype
    if not is_by_row(weight.scheme):
        return rebuild_whole(weight).to(dtype)
    dense = torch.empty((rows, width), dtype=dtype, device=weight.device)
    some = _Rows(weight, dtype)
    if some.kernels is not None and some.kernels.rebuilds(dtype):
        some.kernels.rebuild(slice(0, rows), dense)
    else:
        for block in row_blocks(rows, width, _block_elements(dtype)):
            dense[block] = some(block)
    return dense.reshape(weight.shape)


def quantized_matmul(x: Tensor, weight: QuantizedWeight) -> Tensor:
    """Multiply `x @ weight.T`, keeping no dense copy of the weight.

    The weight is rebuilt in its own dtype, as `dequantize` does, and multiplied and
    summed in float32 (float64 for a float64 `x`); the result is rounded to the dtype of
    `x` once. It is differentiable in `x`, any number of times, and one operator to
    `torch.compile` and `torch.export`: `torch.ops.qmanifest.product`.

    Args:
        x: `(..., in_features)`, of any float dtype, on the weight's device.
        weight: `(out_features, in_features)`.

    Returns:
        `(..., out_features)`, of the dtype of `x`.

    Raises:
        BackendError: `x` does not fit the weight, or the weight is not a matrix.

    """
    if len(weight.shape) != _MATRIX:
        raise BackendError(
            f"expected a weight of (out_features, in_features), found "
            f"{list(weight.shape)}; multiply by one expert at a time"
        )
    if not x.is_floating_point() or not x.ndim or x.shape[-1] != weight.shape[1]:
        raise BackendError(
            f"expected floats of (..., {weight.shape[1]}), "
            f"found {x.dtype} {list(x.shape)}"
        )
    if is_unwatched(x, weight.parts.values()):  # and all of them on the CPU
        return _shaped(x, weight, transposed=False)
    if x.device != weight.device:
        raise BackendError(f"x is on {x.device} and the weight on {weight.device}")
    promised = [role for role, _, _ in weight.scheme.parts(None)]
    roles = tuple(role for role in promised if role in weight.parts)
    parts = [weight.parts[role] for role in roles]
    scheme, shape = write_line(weight.scheme, roles), list(weight.shape)
    product: Tensor = _product(x, parts, scheme, shape, False)  # noqa: FBT003 - operators take no keywords
    return product


@torch.library.custom_op(
    "qmanifest::product",
    mutates_args=(),
    schema="(Tensor x, Tensor[] parts, str scheme, SymInt[] shape, bool transposed)"
    " -> Tensor",
)
def _product(
    x: Tensor,
    parts: Sequence[Tensor],
    scheme: str,
    shape: Sequence[int],
    transposed: bool,  # noqa: FBT001 - operators take no keywords
) -> Tensor:
    """Multiply `x @ weight.T`, or `x @ weight`: each is the other's gradient."""
    parsed, roles = parse_line(scheme)
    stored = dict(zip(roles, parts, strict=True))
    weight = QuantizedWeight(parsed, tuple(shape), stored)
    # Autocast would multiply in 16 bits what was widened on purpose.
    with torch.autocast(x.device.type, enabled=False):
        return _shaped(x, weight, transposed=transposed)


@_product.register_fake
def _(
    x: Tensor,
    parts: Sequence[Tensor],  # noqa: ARG001 - an operator's signature
    scheme: str,  # noqa: ARG001 - likewise
    shape: Sequence[int],
    transposed: bool,  # noqa: FBT001 - likewise
) -> Tensor:
    """Say what the product will be like."""
    return x.new_empty((*x.shape[:-1], shape[1 if transposed else 0]))


def _remember(
    ctx: Any,  # noqa: ANN401 - torch has no type for it
    inputs: tuple[Tensor, list[Tensor], str, list[int], bool],
    output: Tensor,  # noqa: ARG001 - torch's signature
) -> None:
    """Keep the weight for the gradient, as it is stored."""
    _, parts, *ctx.how = inputs
    ctx.save_for_backward(*parts)


def _backward(
    ctx: Any,  # noqa: ANN401 - likewise
    gradient: Tensor,
) -> tuple[Tensor, list[None], None, None, None]:
    """Multiply the gradient by the weight the other way round."""
    parts, (scheme, shape, transposed) = list(ctx.saved_tensors), ctx.how
    back = _product(gradient, parts, scheme, shape, not transposed)
    return back, [None] * len(parts), None, None, None


_product.register_autograd(_backward, setup_context=_remember)


def _shaped(x: Tensor, weight: QuantizedWeight, *, transposed: bool) -> Tensor:
    """Multiply `(..., features)`."""
    if x.dim() == _MATRIX:
        return _multiply(x, weight, transposed=transposed)
    flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    product = _multiply(flat, weight, transposed=transposed)
    return product.reshape(*x.shape[:-1], product.shape[1])


def _multiply(x: Tensor, weight: QuantizedWeight, *, transposed: bool) -> Tensor:
    """Choose how to multiply `(n, features)`."""
    exact = torch.float64 if x.dtype == torch.float64 else torch.float32
    if not is_by_row(weight.scheme):
        dense = dequantize(weight, exact)
        return (x.to(exact) @ (dense if transposed else dense.T)).to(x.dtype)
    narrow = x.dtype == weight.dtype == torch.bfloat16 and _has_bfloat16(x)
    if narrow and x.shape[0] >= NARROW_INPUTS and not transposed:
        return _by_block(x, weight, transposed=False)
    if x.shape[0] <= TILED_INPUTS and exact == torch.float32 and not transposed:
        kernels = packed_matrix(weight)
        if kernels is not None:
            if x.dtype == exact:
                return kernels.product(x)
            return kernels.product(x.float()).to(x.dtype)
    return _by_block(x.to(exact), weight, transposed=transposed).to(x.dtype)


def _has_bfloat16(x: Tensor) -> bool:
    """Whether bfloat16 is multiplied as such, and summed in float32."""
    if not (x.is_cpu and torch.backends.mkldnn.is_available()):  # type: ignore[no-untyped-call] # torch has no types here
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - torch has no public name for it


def _by_block(x: Tensor, weight: QuantizedWeight, *, transposed: bool) -> Tensor:
    """Multiply by blocks of rows, rebuilt in the dtype of `x`."""
    rows, width = weight.shape
    some, x_columns = _Rows(weight, x.dtype), x.T
    # Rows of a result that stands upright lie together, and are written in place.
    upright = x.new_zeros((width if transposed else rows, x.shape[0]))
    for block in row_blocks(rows, width, _block_elements(x.dtype)):
        dense = some(block)
        if transposed:
            upright.addmm_(dense.T, x_columns[block])
        else:
            torch.mm(dense, x_columns, out=upright[block])
    return upright.T.contiguous()


def _block_elements(dtype: torch.dtype) -> int:
    """Find how many elements of a dtype take the memory of a block."""
    return BLOCK_ELEMENTS * torch.float32.itemsize // dtype.itemsize


class _Rows:
    """Rebuilds rows of a weight into memory that is used again for the next."""

    def __init__(self, weight: QuantizedWeight, dtype: torch.dtype) -> None:
        self.weight, self.dtype = weight, dtype
        self.parts, self.width = by_row(weight), weight.shape[-1]
        self.kernels = packed(weight.scheme, self.parts, self.width)
        self.memory = torch.empty(0)

    def __call__(self, block: slice) -> Tensor:
        """Give rows, until they are asked for the next."""
        if self.kernels is None:
            some = {role: part[block] for role, part in self.parts.items()}
            return rebuild(self.weight.scheme, some, self.width).to(self.dtype)
        fits = self.kernels.rebuilds(self.dtype)
        shape = (block.stop - block.start, self.width)
        if not self.memory.numel():
            kind = self.dtype if fits else torch.float32
            self.memory = torch.empty(shape, dtype=kind)
        made = self.memory[: shape[0]]
        self.kernels.rebuild(block, made, shared=torch.get_num_threads() > 1)
        return made.to(self.dtype)
