"""A tile of a product, `y[batch, rows] = x @ weight.T`, in registers.

Every weight is rebuilt once per tile and meets `batch` inputs; every input that is
loaded meets `rows` weights. The `rows * batch` sums stay in vector registers over the
whole length, carried from group to group by phi nodes, so that nothing but codes,
scales and `x` is read. The chunks of a group are unrolled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numba import types
from numba.extending import intrinsic

from qmanifest.kernels import llvm_vectors as v
from qmanifest.kernels.coding import CHUNK, FLOAT_BYTES, LANES, LINE, Coding
from qmanifest.kernels.llvm_codes import chunk_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

AHEAD: Final = 1 << 14
"""Bytes of codes between what is multiplied and what is asked for from memory. The
processor's own guesses end with every row, and what they miss takes longer than all
arithmetic: whole products went from 1.8 times the time of reading to 1.3 times it."""


class Addresses(NamedTuple):
    """Where everything is, and what lies between rows, all in bytes."""

    x: v.Value
    x_stride: v.Value
    codes: v.Value
    codes_stride: v.Value
    scales: v.Value
    biases: v.Value
    scales_stride: v.Value
    y: v.Value
    y_stride: v.Value


def _tile(context: Any, constants: Any, shape: Any, addresses: Any, groups: Any) -> Any:  # noqa: ANN401, ARG001 - numba's types
    """Type the tile: coding and shape are compiled in, addresses are not."""
    coding = Coding(*(each.literal_value for each in constants))
    rows, batch = (each.literal_value for each in shape)

    def emit(_: Any, b: v.Builder, __: Any, given: Sequence[v.Value]) -> v.Value:  # noqa: ANN401 - numba's
        places = [b.extract_value(given[2], i) for i in range(len(Addresses._fields))]
        _emit(b, _Tile(coding, rows, batch), Addresses(*places), given[3])
        return v.I64(0)

    return types.int64(constants, shape, addresses, groups), emit


tile: Final[Any] = intrinsic(prefer_literal=True)(_tile)
"""Called from compiled code with `Coding` and `(rows, batch)` as constants, then the
addresses as a tuple of int64, and the number of groups of a row."""


class _Tile(NamedTuple):
    """What one tile is compiled for."""

    coding: Coding
    rows: int
    batch: int

    def each(self) -> list[tuple[int, int]]:
        """List the sums: row and input."""
        return [(r, m) for r in range(self.rows) for m in range(self.batch)]


def _emit(b: v.Builder, tile: _Tile, to: Addresses, groups: v.Value) -> None:
    """Emit the loop over groups, and the totals after it."""
    before, loop = b.block, b.append_basic_block("groups")
    after = b.append_basic_block("totals")
    b.branch(loop)
    b.position_at_end(loop)
    group = b.phi(v.I64)
    group.add_incoming(v.I64(0), before)
    sums = {each: b.phi(v.F32S) for each in tile.each()}
    for each in sums.values():
        each.add_incoming(v.F32S([0.0] * LANES), before)
    added = dict(sums)
    _add_group(b, tile, to, group, added)
    following = b.add(group, v.I64(1))
    group.add_incoming(following, loop)
    for key, each in sums.items():
        each.add_incoming(added[key], loop)
    b.cbranch(b.icmp_signed("<", following, groups), loop, after)
    b.position_at_end(after)
    for (r, m), lanes in added.items():
        row = b.add(to.y, b.mul(to.y_stride, v.I64(m)))
        v.store(b, v.total(b, lanes), v.at(b, row, r * FLOAT_BYTES))


def _add_group(
    b: v.Builder,
    tile: _Tile,
    to: Addresses,
    group: v.Value,
    sums: dict[tuple[int, int], v.Value],
) -> None:
    """Add the products of one group to all sums."""
    coding = tile.coding
    inputs = v.strided(b, to.x, group, coding.group_size * FLOAT_BYTES)
    _ask_ahead(b, tile, to, group)
    groups = [_group(b, tile.coding, to, group, r) for r in range(tile.rows)]
    for chunk in range(coding.chunks):
        codes = [
            chunk_codes(b, v.at(b, address, chunk * coding.chunk_bytes), coding)
            for _, address in groups
        ]
        for half in range(2):
            weights = [
                weight.weights(b, codes[r][half])
                for r, (weight, _) in enumerate(groups)
            ]
            place = (chunk * CHUNK + half * LANES) * FLOAT_BYTES
            for m in range(tile.batch):
                row = b.add(inputs, b.mul(to.x_stride, v.I64(m)))
                x = v.load(b, v.at(b, row, place), v.F32S)
                for r in range(tile.rows):
                    sums[r, m] = v.fma(b, x, weights[r], sums[r, m])


def _ask_ahead(b: v.Builder, tile: _Tile, to: Addresses, group: v.Value) -> None:
    """Ask for codes, scales and biases of later rows, which follow in memory.

    A group of all rows of the tile is as many bytes as are asked for.
    """
    coding = tile.coding
    step = tile.rows * coding.group_bytes
    codes = v.at(b, v.strided(b, to.codes, group, step), AHEAD)
    for line in range(0, step, LINE):
        v.prefetch(b, v.at(b, codes, line))
    ahead = AHEAD // coding.group_bytes * coding.scale_bytes
    for numbers in (to.scales, to.biases):
        near = v.strided(b, numbers, group, tile.rows * coding.scale_bytes)
        v.prefetch(b, v.at(b, near, ahead))


def _group(
    b: v.Builder, coding: Coding, to: Addresses, group: v.Value, row: int
) -> tuple[v.Group, v.Value]:
    """Load scale and bias of one group of a row; find its codes."""
    shift = v.strided(b, b.mul(to.scales_stride, v.I64(row)), group, coding.scale_bytes)
    weights = v.Group(b, coding, b.add(to.scales, shift), b.add(to.biases, shift))
    codes = b.add(to.codes, b.mul(to.codes_stride, v.I64(row)))
    return weights, v.strided(b, codes, group, coding.group_bytes)
