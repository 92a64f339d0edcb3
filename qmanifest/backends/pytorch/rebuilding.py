"""Rebuilding rows of a weight with nothing but torch: on any device, of any scheme.

To add a scheme, add a branch to `rebuild`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from qmanifest.backends.base import AMAX_UNIT
from qmanifest.elements import ELEMENTS
from qmanifest.errors import BackendError
from qmanifest.packings.u32_lsb import exchanges
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.backends.pytorch.weight import QuantizedWeight
    from qmanifest.schemes import Scheme

_MATRIX: Final = 2
_OCTET: Final = 8


def by_row(weight: QuantizedWeight) -> dict[str, Tensor]:
    """Arrange the parts as tables with one row for every row of the weight."""
    if len(weight.shape) == _MATRIX and "global_scale" not in weight.parts:
        return dict(weight.parts)
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

    Raises:
        BackendError: the scheme is none of rows (`whole` has those).

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
    raise BackendError(f"rows of {scheme} are not rebuilt by themselves")


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
