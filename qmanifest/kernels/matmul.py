"""Products with affine weights that stay packed: `y = x @ weight.T` for few inputs.

The weight is never rebuilt in memory, and each of its bytes is read once for up to 8
inputs. What bounds it for one input is unpacking, at 6 instructions for 32 weights of
4 bits; from 8 inputs on, the products themselves.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numba import types

from qmanifest.kernels.coding import CHUNK, FLOAT_BYTES
from qmanifest.kernels.jit import jit
from qmanifest.kernels.matmul_inputs import evens_first
from qmanifest.kernels.matmul_tile import tile

if TYPE_CHECKING:
    from qmanifest.kernels.coding import Coding

TILES: Final = {1: 4, 2: 4, 4: 4, 8: 2}
"""How many rows a tile has for so many inputs: the sums, the weights and the tables of
a tile must fit the 32 registers."""


@cache
def product(coding: Coding, batch: int) -> Any:  # noqa: ANN401 - numba has no types
    """Compile, or load, the product of `batch` inputs, one of `TILES`.

    Returns:
        A function of addresses and strides in bytes: x, whose rows lie together, codes
        and their stride, scales, biases and their stride, y and its stride; then the
        number of groups of a row, and of rows. It holds no GIL. Sums are float32.

    """
    # Only plain constants may be closed over: numba's cache compares their bytes.
    bits, group_size, scale, lookup = coding
    rows, interleaved = TILES[batch], coding.interleaved

    def run(  # type: ignore[no-untyped-def] # noqa: ANN202, PLR0917 - compiled for int64 alone
        x,  # noqa: ANN001
        codes,  # noqa: ANN001
        codes_stride,  # noqa: ANN001
        scales,  # noqa: ANN001
        biases,  # noqa: ANN001
        scales_stride,  # noqa: ANN001
        y,  # noqa: ANN001
        y_stride,  # noqa: ANN001
        groups,  # noqa: ANN001
        count,  # noqa: ANN001
    ):
        width = groups * group_size
        x_stride = width * FLOAT_BYTES
        apart = np.empty(batch * width if interleaved else 0, np.float32)
        inputs = x
        if interleaved:
            inputs = types.int64(apart.ctypes.data)
            evens_first(x, inputs, batch * width // CHUNK)  # type: ignore[arg-type]  # numba's
        whole = count // rows * rows
        for row in range(0, whole, rows):
            shift = row * scales_stride
            tile(
                (bits, group_size, scale, lookup),
                (rows, batch),
                (
                    *(inputs, x_stride, codes + row * codes_stride, codes_stride),
                    *(scales + shift, biases + shift, scales_stride),
                    *(y + row * FLOAT_BYTES, y_stride),
                ),
                groups,
            )
        for row in range(whole, count):
            shift = row * scales_stride
            tile(
                (bits, group_size, scale, lookup),
                (1, batch),
                (
                    *(inputs, x_stride, codes + row * codes_stride, codes_stride),
                    *(scales + shift, biases + shift, scales_stride),
                    *(y + row * FLOAT_BYTES, y_stride),
                ),
                groups,
            )
        return apart.size  # numba frees an array after its last use

    return jit(run)
