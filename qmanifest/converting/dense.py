"""Dense tensors on their way into a checkpoint: which dtype, and the rounding to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.converting.ahead import Work, cut_bytes, largest_block
from qmanifest.converting.blocks import read_bytes
from qmanifest.dtypes import DTYPES, FLOAT
from qmanifest.errors import WriteError
from qmanifest.packings.arrays import Stored, from_float32, to_array, to_float32

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.packings.arrays import Float32
    from qmanifest.tensors import TensorInfo

DTYPE_NAMES: Final = {"float16": "F16", "bfloat16": "BF16", "float32": "F32"}
"""What users call the dtypes that dense tensors can be written in."""


def dtype_code(name: str | None) -> str | None:
    """Translate a user's dtype.

    Raises:
        WriteError: it is none that dense tensors can be written in.

    """
    if name is None:
        return None
    if name not in DTYPE_NAMES:
        known = ", ".join(DTYPE_NAMES)
        raise WriteError(f"dtype {name!r} is not one of {known}")
    return DTYPE_NAMES[name]


def cast(root: Path, tensor: TensorInfo, dtype: str) -> Work[Buffer]:
    """Plan to read a tensor block by block, and to give its bytes in another dtype.

    Rounded half to even. Tensors that are no floats can only stay as they are. A block
    raises `WriteError` where a finite value of it does not fit the new dtype.
    """

    def make(span: slice) -> Buffer:
        piece = read_bytes(root, tensor, span)
        if tensor.dtype == dtype:
            return piece
        size = len(piece) * 8 // DTYPES[tensor.dtype].bits
        array = to_array(tensor.dtype, (size,), piece)
        return rounded(tensor.name, to_float32(Stored(tensor.dtype, array)), dtype)

    return Work(make, cut_bytes(tensor.nbytes), 3 * largest_block(tensor.nbytes))


def rounded(name: str, values: Float32, dtype: str) -> memoryview:
    """Round the values of a tensor, half to even, and give their bytes.

    Raises:
        WriteError: a finite value does not fit the dtype.

    """
    with np.errstate(over="ignore"):
        stored = from_float32(values, dtype)
    finite = np.isfinite(to_float32(stored))
    lost = np.zeros(()) if finite.all() else np.isfinite(values) & ~finite
    if lost.any():
        raise WriteError(
            f"{int(lost.sum())} values of {name!r} are too large for {dtype}. "
            "Write bfloat16 instead."
        )
    return stored.array.data


def is_float(tensor: TensorInfo) -> bool:
    """Whether the tensor can be rounded to another float dtype."""
    return tensor.dtype in FLOAT
