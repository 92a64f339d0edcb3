"""Tensors in numpy: bytes to arrays and back, 16-bit floats, and blocks of rows.

numpy has no bfloat16 and no 8-bit float. A tensor of such a dtype is an array of its
bits (`uint16` for BF16, `uint8` for F8), and `Stored` keeps the dtype code beside it.

Everything that moves whole weights works through `row_blocks`, so that what it needs
besides its input and its result is a few megabytes, whatever the weight's size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from qmanifest.dtypes import DTYPES, FLOAT
from qmanifest.errors import PackingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.tensors import Shape

AnyArray: TypeAlias = npt.NDArray[Any]
Codes: TypeAlias = npt.NDArray[np.uint8]
"""One code per element."""
Words: TypeAlias = AnyArray
"""Packed codes, in the layout's storage word."""
Float32: TypeAlias = npt.NDArray[np.float32]

BLOCK_ELEMENTS: Final = 1 << 18
"""Elements worked on at a time: a megabyte in float32, which fits a core's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A tensor as a file holds it: its dtype code, and an array of that dtype."""

    dtype: str
    """A code of `qmanifest.dtypes.DTYPES`."""
    array: AnyArray
    """Of dtype `storage_dtype(dtype)`: BF16 as `uint16` bits, F8 as `uint8` bits."""

    def __post_init__(self) -> None:
        """Refuse an array that is not what the dtype code says."""
        expected = storage_dtype(self.dtype)
        if self.array.dtype != expected:
            raise PackingError(
                f"a {self.dtype} tensor is a numpy array of {expected}, "
                f"not of {self.array.dtype}"
            )

    @property
    def shape(self) -> Shape:
        """Dimensions of the tensor."""
        return self.array.shape

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes in a file."""
        return self.array.nbytes


def storage_dtype(dtype: str) -> np.dtype[Any]:
    """Find the numpy dtype that holds a safetensors dtype, or its bits.

    Raises:
        PackingError: the dtype is unknown, or narrower than a byte.

    """
    row = DTYPES.get(dtype)
    if row is None or row.bits % 8:
        raise PackingError(f"no numpy array holds a tensor of dtype {dtype!r}")
    return np.dtype(row.numpy or f"<u{row.bits // 8}")


def to_array(
    dtype: str, shape: Shape, buffer: bytes | bytearray | memoryview
) -> AnyArray:
    """View the bytes of a tensor as an array; nothing is copied.

    Raises:
        PackingError: the buffer is not exactly as long as dtype and shape say.

    """
    storage = storage_dtype(dtype)
    expected = math.prod(shape) * storage.itemsize
    found = memoryview(buffer).nbytes
    if found != expected or min(shape, default=0) < 0:
        raise PackingError(
            f"{dtype} {list(shape)} takes {expected} bytes, the buffer has {found}"
        )
    return np.frombuffer(buffer, storage).reshape(shape)


def to_bytes(stored: Stored) -> bytes:
    """Write a tensor as a file holds it: little-endian, last axis fastest."""
    return stored.array.tobytes()


def to_float32(stored: Stored) -> Float32:
    """Widen an F16, BF16 or F32 tensor; exact. An F32 tensor is returned as it is.

    Raises:
        PackingError: the tensor is none of these.

    """
    if stored.dtype not in FLOAT:
        raise PackingError(f"expected a tensor of {'|'.join(FLOAT)}: {stored.dtype}")
    if stored.dtype == "BF16":
        return np.asarray(stored.array.astype("<u4") << np.uint32(16)).view("<f4")
    return stored.array.astype("<f4", copy=False)


def from_float32(values: Float32, dtype: str) -> Stored:
    """Round to F16, BF16 or F32, half to even; too large a value becomes infinite.

    Raises:
        PackingError: `dtype` is none of these.

    """
    if dtype not in FLOAT:
        raise PackingError(f"expected one of {'|'.join(FLOAT)}: {dtype!r}")
    if dtype == "BF16":
        return Stored(dtype, _bfloat16_bits(values))
    with np.errstate(over="ignore"):
        return Stored(dtype, values.astype(storage_dtype(dtype), copy=False))


def _bfloat16_bits(values: Float32) -> npt.NDArray[np.uint16]:
    """Keep the upper half of float32, rounded half to even; a NaN stays one."""
    bits = values.astype("<f4", copy=False).view("<u4")
    upper = bits >> np.uint32(16)
    with np.errstate(over="ignore"):
        rounded = (bits + (0x7FFF + (upper & 1))) >> 16
    quiet = upper | 0x40
    return np.where(np.isnan(values), quiet, rounded).astype("<u2")


def row_blocks(
    rows: int, width: int, elements: int = BLOCK_ELEMENTS
) -> Iterator[slice]:
    """Cut `rows` rows of `width` elements into slices of whole rows.

    Each slice has at most `elements` elements, or one row where that is longer.
    """
    step = max(1, elements // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
