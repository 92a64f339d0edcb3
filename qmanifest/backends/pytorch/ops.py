"""Rebuilding and multiplying quantized weights, a block of rows at a time.

To add a scheme, add a branch to `rebuild`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, assert_never

import torch
from torch import Tensor

from qmanifest.backends.base import AMAX_UNIT
from qmanifest.elements import ELEMENTS
from qmanifest.errors import BackendError
from qmanifest.packings.arrays import row_blocks
from qmanifest.packings.u32_lsb import exchanges
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.backends.pytorch.weight import QuantizedWeight
    from qmanifest.schemes import Scheme

BLOCK_ELEMENTS: Final = 1 << 20
"""Elements rebuilt at a time: what a product needs beside its input and its result."""

_OCTET: Final = 8
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
    parts = by_row(weight)
    dense = torch.empty(
        (rows, width), dtype=dtype or weight.dtype, device=weight.device
    )
    for block in row_blocks(rows, width, BLOCK_ELEMENTS):
        some = {role: part[block] for role, part in parts.items()}
        dense[block] = rebuild(weight.scheme, some, width)
    return dense.reshape(weight.shape)


def quantized_matmul(x: Tensor, weight: QuantizedWeight) -> Tensor:
    """Multiply `x @ weight.T`, keeping no dense copy of the weight.

    The weight is rebuilt in its own dtype, as `dequantize` does, and multiplied and
    summed in float32 (float64 for a float64 `x`); the result is rounded to the dtype of
    `x` once. It is differentiable in `x`, any number of times.

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
    if x.device != weight.device:
        raise BackendError(f"x is on {x.device} and the weight on {weight.device}")
    return _product(x, weight, transposed=False)


def by_row(weight: QuantizedWeight) -> dict[str, Tensor]:
    """Arrange the parts as tables with one row for every row of the weight."""
    rows = math.prod(weight.shape[:-1])
    tables = {}
    for role, part in weight.parts.items():
        if role == "global_scale":
            each = part.reshape(-1).repeat_interleave(rows // max(1, part.numel()))
            tables[role] = each.reshape(rows, 1)
        else:
            tables[role] = part.reshape(rows, part.shape[-1])
    return tables


def rebuild(scheme: Scheme, parts: Mapping[str, Tensor], width: int) -> Tensor:
    """Rebuild rows `(rows, width)` of a weight from the same rows of its parts.

    Rounds exactly as the function of the same scheme in the reference does.
    """
    codes = _unpack(parts["codes"], scheme.bits, width)
    scale = _per_code(parts["scales"], scheme.group_size, width)
    if isinstance(scheme, Affine):
        bias = _per_code(parts["biases"], scheme.group_size, width)
        return codes.to(scale.dtype).mul_(scale).add_(bias)
    if isinstance(scheme, ZeroPoint):
        zero = _per_code(parts["zeros"], scheme.group_size, width)
        difference = codes.float().sub_(zero.float())
        return difference.mul_(scale.float()).to(scale.dtype)
    if isinstance(scheme, Microscaling):
        scale = _look_up(scheme.scale, scale)
        if scheme.global_scale == "amax":
            amax = parts["global_scale"].float()
            # By a number, CUDA would multiply with the reciprocal instead.
            scale = scale * (amax / torch.full_like(amax, AMAX_UNIT))
        return _look_up(scheme.element, codes).mul_(scale)
    assert_never(scheme)


def _unpack(words: Tensor, bits: int, width: int) -> Tensor:
    """Unpack rows of words into the first `width` codes of each, uint8.

    Both layouts are a little-endian bit stream, as are the words' bytes on every
    platform that torch supports. See `qmanifest.packings.u32_lsb`.
    """
    octets = words.contiguous().view(torch.uint8)
    if bits == _OCTET:
        return octets[:, :width]
    octets = torch.nn.functional.pad(octets, (0, -octets.shape[1] % bits))
    rows, chunks = octets.shape[0], octets.shape[1] // bits
    eights = octets.new_zeros((rows, chunks, 8))
    eights[..., :bits] = octets.view(rows, chunks, bits)
    lanes = eights.view(torch.int64)
    for stay, arrive, distance in reversed(exchanges(bits)):
        lanes = (lanes & stay) | ((lanes & arrive) << distance)
    return lanes.view(torch.uint8).view(rows, chunks * 8)[:, :width]


def _per_code(numbers: Tensor, group_size: int, width: int) -> Tensor:
    """Repeat one number per group into one per code; the last group may be short."""
    return numbers.repeat_interleave(group_size, dim=1)[:, :width]


def _look_up(element: str, codes: Tensor) -> Tensor:
    """Find the float32 values of the codes of a number format."""
    values = torch.tensor(ELEMENTS[element].values, device=codes.device)
    return values[codes.to(torch.int32)]


class _Product(torch.autograd.Function):
    """`x @ weight.T`, or `x @ weight` when transposed: each is the other's gradient."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch has no type for it
        x: Tensor,
        weight: QuantizedWeight,
        transposed: bool,  # noqa: FBT001 - `apply` takes no keywords
    ) -> Tensor:
        """Multiply, and remember the weight as it is stored."""
        ctx.weight, ctx.transposed = weight, transposed
        # Autocast would multiply in 16 bits what was widened on purpose.
        with torch.autocast(x.device.type, enabled=False):
            return _multiply(x, weight, transposed=transposed)

    @staticmethod
    def backward(
        ctx: Any,  # noqa: ANN401 - likewise
        *gradients: Tensor,
    ) -> tuple[Tensor, None, None]:
        """Multiply the gradient by the weight the other way round."""
        (gradient,) = gradients
        return (
            _product(gradient, ctx.weight, transposed=not ctx.transposed),
            None,
            None,
        )


def _product(x: Tensor, weight: QuantizedWeight, *, transposed: bool) -> Tensor:
    """Multiply differentiably."""
    made: Tensor = _Product.apply(x, weight, transposed)  # type: ignore[no-untyped-call] # torch's own
    return made


def _multiply(x: Tensor, weight: QuantizedWeight, *, transposed: bool) -> Tensor:
    """Multiply block by block of the weight's rows."""
    rows, width = weight.shape
    exact = torch.float64 if x.dtype == torch.float64 else torch.float32
    flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).to(exact)
    product = flat.new_zeros((flat.shape[0], width if transposed else rows))
    parts = by_row(weight)
    for block in row_blocks(rows, width, BLOCK_ELEMENTS):
        some = {role: part[block] for role, part in parts.items()}
        dense = rebuild(weight.scheme, some, width).to(exact)
        if transposed:
            product.addmm_(flat[:, block], dense)
        else:
            product[:, block] = flat @ dense.T
    return product.reshape(*x.shape[:-1], product.shape[1]).to(x.dtype)
