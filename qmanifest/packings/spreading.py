"""Numbers of blocks, as a `Spread` says that they are stored, for the rows of a weight.

Numbers are arranged as a table once, which copies at most as many as are stored. The
weights of some rows then find theirs in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qmanifest.errors import PackingError
from qmanifest.spreads import TILE

if TYPE_CHECKING:
    import numpy.typing as npt

    from qmanifest.packings.arrays import AnyArray
    from qmanifest.spreads import Spread
    from qmanifest.tensors import Shape


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """One number per block of a weight."""

    spread: Spread
    shape: Shape
    """Of the weight, `(..., out_features, in_features)`."""
    table: AnyArray
    """`(rows of blocks, columns of blocks)`, the experts below each other; `(blocks,)`
    where blocks are counted along the flattened weight."""

    def of_rows(
        self, rows: slice, groups: npt.NDArray[np.intp] | None = None
    ) -> AnyArray:
        """Find the numbers of the weights of some rows.

        Args:
            rows: of the weight, with the experts below each other.
            groups: the column of blocks of every input, where it is not its place that
                tells.

        Returns:
            `(rows, in_features)`, or `(rows, 1)` where all of a row share one.

        """
        n, k = (1, *self.shape)[-2:]
        if self.table.ndim == 1:
            return self.table[self._along(np.arange(rows.start * k, rows.stop * k))]
        index = np.arange(rows.start, rows.stop)
        of_expert = self.table.shape[0] // (math.prod(self.shape[:-1]) // n)
        size = self.spread.rows or n
        some: AnyArray = self.table[index // n * of_expert + index % n // size]
        if groups is not None:
            return np.take(some, groups, axis=1)
        if some.shape[1] == 1:
            return some
        return np.repeat(some, self.spread.columns, axis=1)[:, :k]

    def _along(self, index: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Find the block of places in the flattened weight: `(rows, inputs)`."""
        if self.spread.form == "flat-row":
            block = index % self.table.size
        else:
            block = index // (self.spread.columns or math.prod(self.shape))
        return block.reshape(-1, self.shape[-1])


def blocks(numbers: AnyArray, spread: Spread, shape: Shape) -> Blocks:
    """Arrange the stored numbers of a weight of `shape`, which has elements.

    Raises:
        PackingError: they have not the shape that the spread says.

    """
    if min(shape, default=0) <= 0:
        raise PackingError(f"no block is in a weight of {list(shape)}")
    if numbers.shape != spread.shape(shape):
        raise PackingError(
            f"numbers of {spread} blocks in {list(shape)} are "
            f"{list(spread.shape(shape))}, not {list(numbers.shape)}"
        )
    if spread.form.startswith("flat"):
        return Blocks(spread, shape, numbers.reshape(-1))
    return Blocks(spread, shape, _table(numbers, spread, shape))


def _table(numbers: AnyArray, spread: Spread, shape: Shape) -> AnyArray:
    """Arrange numbers by rows and columns of blocks."""
    n, k = (1, *shape)[-2:]
    experts = math.prod(shape[:-2])
    down, across = -(-n // (spread.rows or n)), -(-k // (spread.columns or k))
    if spread.form == "transposed":
        numbers = numbers.swapaxes(-1, -2)
    elif spread.form == "swizzled":
        numbers = _unswizzled(numbers.reshape(experts, -1), down, across)
    elif spread.form == "awq-rows":
        numbers = numbers[:, :across]
    elif spread.form == "awq-columns":
        numbers = numbers[:across].T
    elif spread.form in {"one", "scalar"}:
        down, across = 1, 1
    if spread.form in {"one", "scalar", "vector"}:  # the experts have the same ones
        numbers = np.broadcast_to(numbers.reshape(1, -1), (experts, numbers.size))
    return numbers.reshape(experts * down, across)


def _unswizzled(numbers: AnyArray, down: int, across: int) -> AnyArray:
    """Take `(experts, ...)` out of the tiles that tensor cores read.

    A tile of 128 x 4 is stored as 32 x 4 x 4: row `r` and column `c` of it are at
    `(r % 32, r // 32, c)`.
    """
    rows, columns = TILE
    tiles = (-(-down // rows), -(-across // columns))
    stored = numbers.reshape(-1, *tiles, 32, 4, columns)
    plain = stored.transpose(0, 1, 4, 3, 2, 5)
    whole = plain.reshape(-1, tiles[0] * rows, tiles[1] * columns)
    return whole[:, :down, :across]
