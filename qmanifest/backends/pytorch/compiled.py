"""The compiled kernels as torch calls them: for which weights, and how.

They take affine weights on the CPU, of groups of 32, 64 or 128 that fill every row.
Whatever they do not take is left to `rebuilding`, which gives the same weights, bit for
bit.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor

from qmanifest.backends.base import MissingLibraryError
from qmanifest.backends.pytorch.threads import shared_out
from qmanifest.errors import BackendError
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme

TILE_INPUTS: Final = 8
"""The most inputs that the product's kernel takes at a time."""
GROUPS: Final = (32, 64, 128)
_LOOKED_UP: Final = 4
"""Bits of the widest code that has its weight looked up."""
_SCALES: Final = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_FLOAT: Final = 4


class Packed(NamedTuple):
    """A weight that the kernels can take."""

    coding: Any
    """A `qmanifest.kernels.llvm_vectors.Coding`."""
    codes: Tensor
    scales: Tensor
    biases: Tensor

    @property
    def width(self) -> int:
        """Weights of a row."""
        return int(self.scales.shape[1] * self.coding.group_size)

    def _from(self, start: int) -> tuple[int, ...]:
        """Give the addresses and strides of the rows from `start`."""
        codes, scales = (each.stride(0) * each.element_size() for each in self[1:3])
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
        if self.coding.interleaved:
            x = x.view(batch, -1, 16, 2).transpose(2, 3)
        x = x.contiguous()
        y = x.new_empty((batch, rows))
        run = _module("matmul").product(self.coding, batch)
        to, groups = y.data_ptr(), self.scales.shape[1]
        strides = (self.width * _FLOAT, rows * _FLOAT)

        def some(start: int, stop: int) -> None:
            place = to + start * _FLOAT
            stored = self._from(start)
            run(
                x.data_ptr(),
                strides[0],
                *stored,
                place,
                strides[1],
                groups,
                stop - start,
            )

        shared_out(some, rows, rows * self.width * batch, torch.get_num_threads())
        return y[:count]

    def rebuild(self, block: slice, out: Tensor) -> None:
        """Rebuild some rows into `out`: float32, or bfloat16 if the scales are."""
        narrow = out.dtype == torch.bfloat16
        run = _module("matmul_rows").rebuild(self.coding, narrow)
        stride, groups = out.stride(0) * out.element_size(), self.scales.shape[1]
        count = block.stop - block.start
        run(out.data_ptr(), stride, *self._from(block.start), groups, count)

    def rebuilds(self, dtype: torch.dtype) -> bool:
        """Whether rows can be rebuilt in `dtype`, without another rounding."""
        narrow = dtype == torch.bfloat16 and self.coding.scale == "BF16"
        return narrow or dtype == torch.float32


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
    vectors = _module("llvm_vectors")
    if dtype == "F16" and not vectors.has_float16():
        return None
    lookup = scheme.bits <= _LOOKED_UP and vectors.has_lookup()
    coding = vectors.Coding(scheme.bits, scheme.group_size, dtype, lookup)
    return Packed(coding, codes.contiguous(), scales.contiguous(), biases.contiguous())


def enabled() -> bool:
    """Whether the kernels are installed and not refused by `QMANIFEST_KERNELS`.

    Raises:
        MissingLibraryError: they are asked for and numba is not installed.
        BackendError: the variable has no value that it may have.

    """
    asked = os.environ.get("QMANIFEST_KERNELS", "")
    if asked not in ("", "reference", "fast"):
        raise BackendError(
            f"QMANIFEST_KERNELS is {asked!r}; set it to 'reference' or 'fast'"
        )
    if asked == "reference" or sys.byteorder != "little":
        return False
    if asked == "fast" and not _installed():
        raise MissingLibraryError(
            "QMANIFEST_KERNELS is 'fast', which needs numba; "
            "install it with: pip install 'qmanifest[fast]'",
            name="numba",
        )
    return _installed()


@cache
def _installed() -> bool:
    """Whether numba can be imported, which a numpy newer than it knows prevents."""
    try:
        importlib.import_module("numba")
    except ImportError:
        return False
    return True


@cache
def _module(name: str) -> Any:  # noqa: ANN401 - modules of compiled code have no types
    """Import a module of kernels, on first use: numba takes a third of a second."""
    return importlib.import_module(f"qmanifest.kernels.{name}")
