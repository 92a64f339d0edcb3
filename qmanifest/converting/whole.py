"""Weights of layouts whose rows cannot be read by themselves, rebuilt block by block.

Words may hold codes of several rows, and scales and zeros may lie across them. So the
stored parts of a weight are read as a whole, or of a stack those of one expert; what is
computed in float32 are blocks of rows.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.backends import reference
from qmanifest.converting.ahead import Work, cut_rows, largest_block
from qmanifest.converting.blocks import read_bytes, read_stored
from qmanifest.converting.dense import rounded
from qmanifest.errors import BackendError, PackingError, WriteError
from qmanifest.packings.arrays import Stored, to_array, to_float32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.packings.arrays import Float32
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorInfo
    from qmanifest.writing.header import OutputTensor

_MATRIX: Final = 2


@dataclass(frozen=True, slots=True)
class Whole:
    """A stored weight, and what becomes of it."""

    root: Path
    output: OutputTensor
    scheme: Scheme
    shape: Shape
    """Logical."""
    parts: Mapping[str, TensorInfo]
    """What the weight is made of, by role."""
    inputs: TensorInfo | None
    """What the layer multiplied its inputs by: the columns are, instead."""
    turned: bool
    """Whether inputs come before outputs in what is written."""

    def work(self) -> Work[Buffer]:
        """Plan to rebuild it: expert by expert, at once, or by blocks of rows."""
        count = math.prod(self.shape)
        if count and len(self.shape) > _MATRIX and self._is_stack():
            blocks = [slice(n, n + 1) for n in range(self.shape[0])]
            return Work(self._expert, blocks, 8 * count // self.shape[0])
        if not count or self.turned:
            return Work(self._at_once, [slice(0, 1)], 8 * count)
        each = 4 * self.shape[-1]
        blocks = cut_rows(self.shape, each)
        read = (count + sum(part.nbytes for part in self.parts.values())) // len(blocks)
        nbytes = 3 * largest_block(4 * count, each) + read
        return Work(_Rows(self, len(blocks)).block, blocks, nbytes)

    def decoder(self) -> Callable[[slice], Float32]:
        """Read all parts and prepare to rebuild rows."""
        stored = {role: read_stored(self.root, t) for role, t in self.parts.items()}
        return reference.decoder(self.scheme, stored, self.shape)

    def bytes_of(self, values: Float32) -> Buffer:
        """Round rebuilt rows to what is written, and give their bytes."""
        if self.inputs is not None:
            columns = to_float32(read_stored(self.root, self.inputs)).reshape(-1)
            with np.errstate(over="ignore", invalid="ignore"):
                values = values * columns
        if self.turned:
            values = np.ascontiguousarray(np.swapaxes(values, -1, -2))
        return rounded(self.output.name, values, self.output.dtype)

    def _is_stack(self) -> bool:
        """Whether every part is a stack of the parts of one expert."""
        first, *rest = self.shape
        one = {r: size for r, _, size in self.scheme.parts(tuple(rest))}
        return all(
            size is not None
            and size[:1] == (first,)
            and math.prod(size) == first * math.prod(one[role] or ())
            for role, _, size in self.scheme.parts(self.shape)
            if role in self.parts
        )

    def _expert(self, number: slice) -> Buffer:
        """Rebuild one weight of a stack."""
        shape, stored = self.shape[1:], {}
        one = {r: size or () for r, _, size in self.scheme.parts(shape)}
        for role, part in self.parts.items():
            each = part.nbytes // self.shape[0]
            span = slice(number.start * each, number.stop * each)
            data = read_bytes(self.root, part, span)
            stored[role] = Stored(part.dtype, to_array(part.dtype, one[role], data))
        with _naming(self.output.name):
            return self.bytes_of(reference.dequantize(self.scheme, stored, shape))

    def _at_once(self, _: slice) -> Buffer:
        """Rebuild all of it."""
        stored = {role: read_stored(self.root, t) for role, t in self.parts.items()}
        with _naming(self.output.name):
            return self.bytes_of(reference.dequantize(self.scheme, stored, self.shape))


@dataclass(slots=True)
class _Rows:
    """Rebuilds blocks of rows from parts that are read once, and dropped at the end."""

    whole: Whole
    left: int
    """Blocks that were not asked for yet."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _rebuild: Callable[[slice], Float32] | None = None

    def block(self, rows: slice) -> Buffer:
        """Rebuild some rows."""
        with _naming(self.whole.output.name):
            with self._lock:
                rebuild = self._rebuild or self.whole.decoder()
                self.left -= 1
                self._rebuild = rebuild if self.left else None
            return self.whole.bytes_of(rebuild(rows))


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say of which weight the parts are that cannot be rebuilt."""
    try:
        yield
    except (BackendError, PackingError) as error:
        raise WriteError(f"{name!r}: {error}") from error
