"""Dense tensors on their way into a checkpoint: which dtype, and the rounding to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.dtypes import FLOAT
from qmanifest.errors import WriteError
from qmanifest.packings.arrays import Stored, from_float32, to_array, to_float32
from qmanifest.reading.tensor_bytes import iter_tensor, read_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
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


def read_stored(root: Path, tensor: TensorInfo) -> Stored:
    """Read a whole tensor as an array."""
    data = read_tensor(root, tensor)
    return Stored(tensor.dtype, to_array(tensor.dtype, tensor.shape, data))


def cast(root: Path, tensor: TensorInfo, dtype: str) -> Iterator[Buffer]:
    """Yield a tensor's bytes in another dtype, piece by piece.

    Rounded half to even. Tensors that are no floats can only stay as they are.

    Raises:
        WriteError: a finite value does not fit the new dtype.

    """
    for piece in iter_tensor(root, tensor):
        if tensor.dtype == dtype:
            yield piece
            continue
        size = len(piece) * 8 // (32 if tensor.dtype == "F32" else 16)
        array = to_array(tensor.dtype, (size,), piece)
        values = to_float32(Stored(tensor.dtype, array))
        yield rounded(tensor.name, values, dtype)


def rounded(name: str, values: Float32, dtype: str) -> memoryview:
    """Round the values of a tensor, half to even, and give their bytes.

    Raises:
        WriteError: a finite value does not fit the dtype.

    """
    with np.errstate(over="ignore"):
        stored = from_float32(values, dtype)
    lost = np.isfinite(values) & ~np.isfinite(to_float32(stored))
    if lost.any():
        raise WriteError(
            f"{int(lost.sum())} values of {name!r} are too large for {dtype}. "
            "Write bfloat16 instead."
        )
    return stored.array.data


def is_float(tensor: TensorInfo) -> bool:
    """Whether the tensor can be rounded to another float dtype."""
    return tensor.dtype in FLOAT
