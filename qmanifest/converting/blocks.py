"""Blocks of stored tensors: rows of one, read from their place in the file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qmanifest.packings.arrays import Stored, to_array
from qmanifest.reading.files import FileProblem
from qmanifest.reading.tensor_bytes import iter_tensor, read_tensor
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from pathlib import Path


def read_bytes(
    root: Path, tensor: TensorInfo, span: slice, into: bytearray | None = None
) -> memoryview:
    """Read the bytes of a tensor from `span.start` to `span.stop`.

    Args:
        root: folder that the tensor's file is relative to.
        tensor: from the header of that file.
        span: bytes, counted from the tensor's first one.
        into: where to put them; at least as long.

    Raises:
        FileProblem: the file cannot be read, or is shorter than its header says.

    """
    begin, end = tensor.begin + span.start, tensor.begin + span.stop
    cut = TensorInfo(tensor.name, tensor.dtype, tensor.shape, begin, end, tensor.file)
    try:
        return read_tensor(root, cut, into)
    except FileProblem:
        # said of the whole tensor, where that fails too: a reader knows no blocks
        for _ in iter_tensor(root, tensor):
            pass
        raise


def row_bytes(tensor: TensorInfo) -> int:
    """Count the bytes of one row; 0 where there is none."""
    return tensor.nbytes // max(1, math.prod(tensor.shape[:-1]))


def read_rows(
    root: Path, tensor: TensorInfo, rows: slice, into: bytearray | None = None
) -> Stored:
    """Read rows of a tensor, all axes but the last counted as one.

    Raises:
        FileProblem: as `read_bytes`.

    """
    each = row_bytes(tensor)
    span = slice(rows.start * each, rows.stop * each)
    data = read_bytes(root, tensor, span, into)
    shape = (rows.stop - rows.start, tensor.shape[-1])
    return Stored(tensor.dtype, to_array(tensor.dtype, shape, data))


def read_stored(root: Path, tensor: TensorInfo) -> Stored:
    """Read a whole tensor as an array.

    Raises:
        FileProblem: as `read_bytes`.

    """
    data = read_tensor(root, tensor)
    return Stored(tensor.dtype, to_array(tensor.dtype, tensor.shape, data))
