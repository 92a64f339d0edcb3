"""Quantize and pack by compiled code, called without numba once the code is kept."""

from __future__ import annotations

from ctypes import c_ssize_t, c_void_p
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.kernels.native import entry
from qmanifest.packings.u32_lsb import exchanges

if TYPE_CHECKING:
    import numpy.typing as npt

    from qmanifest.packings.arrays import AnyArray, Codes

    Lanes = npt.NDArray[np.uint64]

BLOCK: Final = 4096
"""Elements of a block: 16 kilobytes in float32, a third of a first-level cache."""
_LANES: Final = 16
_ARRAYS: Final = 11
_NUMBERS: Final = 6


def steps_of(bits: int) -> Lanes:
    """Arrange the exchanges for codes of `bits` bits as a table of uint64."""
    return np.array(exchanges(bits), np.uint64)


def quantize_groups(  # noqa: PLR0917 - as the compiled function has them
    values: AnyArray,
    octets: Codes,
    scales: AnyArray,
    biases: AnyArray,
    widths: tuple[int, int],
    steps: Lanes,
    groups: tuple[int, int],
) -> bool:
    """Quantize a range of groups: see `compiled_quantize.quantize_groups`."""
    bits, group_size = widths
    step = max(1, BLOCK // group_size)
    padded = -(-step // _LANES) * _LANES
    codes = np.empty(step * group_size, np.uint8)
    one, two = np.zeros((2, padded), np.float32)
    stored = np.empty((2, padded), scales.dtype)
    scratch = (codes, codes.view(np.uint64), one, two, stored[0], stored[1])
    arrays = (values, octets, scales, biases)
    kernel = entry(
        f"quantize-{values.dtype}-{scales.dtype}",
        (*[c_void_p] * _ARRAYS, *[c_ssize_t] * _NUMBERS),
        partial(_module, values.dtype.name, scales.dtype.name),
    )
    if kernel is None:
        return _by_numba(*arrays, scratch, widths, steps, groups)
    pointers = (array.ctypes.data for array in (*arrays, *scratch, steps))
    return kernel(*pointers, bits, group_size, codes.size, padded, *groups)


def _by_numba(*given: object) -> bool:
    """Have numba run the same function."""
    from qmanifest.kernels import compiled_quantize  # noqa: PLC0415 - numba

    regular: bool = compiled_quantize.quantize_groups(*given)  # type: ignore[arg-type] # as there
    return regular


def _module(value: str, scale: str) -> str:
    from qmanifest.kernels.compiled_quantize import module  # noqa: PLC0415 - numba

    return module(value, scale)
