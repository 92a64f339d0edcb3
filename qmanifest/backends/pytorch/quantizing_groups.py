"""Quantizing and packing groups with nothing but torch: on any device.

The rule is that of `qmanifest.writing.quantize`, operation by operation, for codes of 2
to 8 bits. What is not finite gives numbers that mean nothing, and a scale that is not
finite either, by which the caller knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from qmanifest.packings.arrays import row_blocks
from qmanifest.packings.u32_lsb import exchanges
from qmanifest.writing.quantize import LEAST_SCALE

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_ELEMENTS: Final = 1 << 18
"""Elements worked on at a time on the CPU: a megabyte, that stays in its caches. Fewer
would lose to the microseconds that each of thirty operations takes in any case."""
_ELSEWHERE: Final = 1 << 24
"""The same elsewhere: what keeps a device busy, and takes little of its memory."""
_OCTET: Final = 8
_UNITS: Final = {2: torch.int16, 4: torch.int32, 6: torch.int16}
"""The widest integers of which the bytes of eight codes are whole ones."""


def quantize_groups(values: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize and pack `(groups, group_size)` floats, of which there are some.

    Returns:
        The codes as a little-endian bit stream, flat uint8, with unused bytes at the
        end where the codes are no multiple of 8; scales and biases, flat float32.

    """
    count, size = values.shape
    device = values.device
    octets = torch.empty(
        -(-count * size // _OCTET) * bits, dtype=torch.uint8, device=device
    )
    scales, biases = (
        torch.empty((count, 1), dtype=torch.float32, device=device) for _ in range(2)
    )
    for block in _blocks(count, size, BLOCK_ELEMENTS if values.is_cpu else _ELSEWHERE):
        some = values[block].float()
        scales[block], biases[block] = scale, bias = _scale_and_bias(some, bits)
        stream = _packed(_codes(some, scale, bias, bits), bits)
        start = block.start * size // _OCTET * bits
        octets[start : start + stream.numel()] = stream
    return octets, scales.reshape(-1), biases.reshape(-1)


def _blocks(count: int, size: int, elements: int) -> Iterator[slice]:
    """Cut groups into slices; all but the last have a multiple of eight groups."""
    for block in row_blocks(-(-count // _OCTET), _OCTET * size, elements):
        yield slice(block.start * _OCTET, min(block.stop * _OCTET, count))


def _scale_and_bias(values: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Find the scale and the bias of groups, `(n, 1)` each."""
    low, high = values.amin(-1, keepdim=True), values.amax(-1, keepdim=True)
    # By a number, CUDA would multiply with the reciprocal instead.
    span = (high - low) / torch.full_like(high, 2**bits - 1)
    span.clamp_(min=float(LEAST_SCALE))
    low_end = low.abs() > high.abs()
    scale = torch.where(low_end, span, -span)
    end = torch.where(low_end, low, high)
    steps = torch.round(end / scale)
    zero = steps == 0
    scale = torch.where(zero, scale, end / steps.masked_fill(zero, 1))
    return scale, end.masked_fill(zero, 0)


def _codes(values: Tensor, scale: Tensor, bias: Tensor, bits: int) -> Tensor:
    """Find the codes nearest to values, flat uint8."""
    # Equal weights above 3.4e31 get a scale of zero; 0 / 1 is the code of 0 / 0.
    codes = (values - bias).div_(scale.masked_fill(scale == 0, 1)).round_()
    codes.clamp_(0, 2**bits - 1)
    # From float to uint8 at once takes twice as long on the CPU.
    return codes.to(torch.int32).to(torch.uint8).reshape(-1)


def _packed(codes: Tensor, bits: int) -> Tensor:
    """Pack flat codes; see `qmanifest.packings.u32_lsb`."""
    if bits == _OCTET:
        return codes
    if codes.numel() % _OCTET:
        codes = torch.nn.functional.pad(codes, (0, -codes.numel() % _OCTET))
    lanes = codes.view(torch.int64)
    for stay, arrive, distance in exchanges(bits):
        moved = (lanes >> distance).bitwise_and_(arrive)
        lanes = lanes.bitwise_and_(stay).bitwise_or_(moved)
    unit = _UNITS.get(bits, torch.uint8)
    units = lanes.view(unit).view(lanes.numel(), -1)
    used = bits // unit.itemsize
    return units[:, :used].contiguous().view(torch.uint8).reshape(-1)
