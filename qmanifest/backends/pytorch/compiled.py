"""The compiled kernels as torch calls them: for which weights, and how.

They take affine weights on the CPU, of groups of 32, 64 or 128 that fill every row.
Whatever they do not take is left to `rebuilding`, which gives the same weights, bit for
bit.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor

from qmanifest.backends.pytorch.rebuilding import by_row
from qmanifest.schemes import Affine
from qmanifest.threads import over_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.backends.pytorch.weight import QuantizedWeight
    from qmanifest.kernels.coding import Coding
    from qmanifest.schemes import Scheme

TILE_INPUTS: Final = 8
"""The most inputs that the product's kernel takes at a time."""
GROUPS: Final = (32, 64, 128)
_SCALES: Final = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_FLOAT: Final = 4
"""Bytes of one."""


class Packed(NamedTuple):
    """A weight that the kernels can take."""

    coding: Coding
    codes: Tensor
    scales: Tensor
    biases: Tensor

    def is_of(self, parts: Mapping[str, Tensor]) -> bool:
        """Whether these are the very tensors of a weight, not copies of them."""
        return (
            self.codes is parts["codes"]
            and self.scales is parts["scales"]
            and self.biases is parts["biases"]
        )

    @property
    def _strides(self) -> tuple[int, int]:
        """Bytes from row to row, of the codes and of scales and biases."""
        groups = self.scales.shape[1]
        return groups * self.coding.group_bytes, groups * self.coding.scale_bytes

    @property
    def width(self) -> int:
        """Weights of a row."""
        return int(self.scales.shape[1] * self.coding.group_size)

    def _from(self, start: int) -> tuple[int, ...]:
        """Give the addresses and strides of the rows from `start`."""
        codes, scales = self._strides
        return (
            *(self.codes.data_ptr() + start * codes, codes),
            self.scales.data_ptr() + start * scales,
            *(self.biases.data_ptr() + start * scales, scales),
        )

    def product(self, x: Tensor) -> Tensor:
        """Multiply float32 `(n, in_features)` by the weight, transposed.

        Returns:
            `(n, out_features)` float32, summed in float32.

        """
        if x.shape[0] <= TILE_INPUTS:
            return self._tile(x)
        y = x.new_empty((x.shape[0], self.codes.shape[0]))
        for start in range(0, x.shape[0], TILE_INPUTS):
            some = slice(start, start + TILE_INPUTS)
            y[some] = self._tile(x[some])
        return y

    def _tile(self, x: Tensor) -> Tensor:
        """Multiply a few inputs; there are kernels for 1, 2, 4 and 8."""
        count, rows = x.shape[0], self.codes.shape[0]
        batch = 1 << (count - 1).bit_length()
        if batch > count:
            x = torch.nn.functional.pad(x, (0, 0, 0, batch - count))
        x = x.contiguous()
        y = x.new_empty((batch, rows))
        run = _module("matmul").product(self.coding, batch)
        groups = self.scales.shape[1]
        inputs, to, stride = x.data_ptr(), y.data_ptr(), rows * _FLOAT

        def some(start: int, stop: int) -> None:
            place = to + start * _FLOAT
            run(inputs, *self._from(start), place, stride, groups, stop - start)

        over_rows(some, rows, rows * self.width * batch, torch.get_num_threads())
        return y[:count] if batch > count else y

    def rebuild(self, block: slice, out: Tensor, *, shared: bool = False) -> None:
        """Rebuild some rows into `out`, contiguous: see `rebuilds` for its dtype.

        With `shared` other processors are to read them next, for whom it is quicker
        to fetch them from memory than out of this one's cache.
        """
        rows, groups = block.stop - block.start, self.scales.shape[1]
        if rows:
            run = _module("compiled_dequantize").rebuild(
                self.coding,
                "F32" if out.dtype == torch.float32 else self.coding.scale,
                streamed=_module("coding").streams(
                    out.data_ptr(), out.nbytes, shared=shared
                ),
            )
            codes, _, scales, biases, _ = self._from(block.start)
            run(out.data_ptr(), codes, scales, biases, rows * groups)

    def rebuilds(self, dtype: torch.dtype) -> bool:
        """Whether rows can be rebuilt in `dtype`, without another rounding."""
        return dtype in {torch.float32, self.scales.dtype}


def packed_matrix(weight: QuantizedWeight) -> Packed | None:
    """Prepare a matrix for the kernels, once: see `packed`."""
    kept: Packed
    for kept in weight.kept:
        if kept.is_of(weight.parts):
            return kept
    made = packed(weight.scheme, by_row(weight), weight.shape[1])
    if made is not None and made.is_of(weight.parts):
        weight.kept[:] = [made]
    return made


def packed(scheme: Scheme, parts: Mapping[str, Tensor], width: int) -> Packed | None:
    """Prepare a weight, by rows as `by_row` arranges it, for the kernels.

    Returns:
        None where the kernels do not take it, or are not to be used.

    Raises:
        MissingLibraryError: the kernels are asked for and numba is not installed.

    """
    if not isinstance(scheme, Affine) or not enabled():
        return None
    codes, scales, biases = parts["codes"], parts["scales"], parts["biases"]
    dtype = _SCALES.get(scales.dtype)
    fits = scheme.group_size in GROUPS and width > 0 and not width % scheme.group_size
    if codes.device.type != "cpu" or dtype is None or not fits:
        return None
    made = _module("cpu").coding_of(scheme.bits, scheme.group_size, dtype)
    coding: Coding | None = made
    if coding is None:
        return None
    return Packed(coding, codes.contiguous(), scales.contiguous(), biases.contiguous())


def enabled() -> bool:
    """Whether the kernels are installed and not refused by `QMANIFEST_KERNELS`.

    Raises:
        BackendError: as `qmanifest.kernels.active`.

    """
    return bool(importlib.import_module("qmanifest.kernels").are_compiled())


@cache
def _module(name: str) -> Any:  # noqa: ANN401 - modules of compiled code have no types
    """Import a module of kernels, on first use: numba takes a third of a second."""
    return importlib.import_module(f"qmanifest.kernels.{name}")
