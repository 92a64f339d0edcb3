"""Groups of an affine weight, rebuilt from packed codes: a function of compiled code.

What is written is bit for bit what `qmanifest.backends.reference` rebuilds, in float32
or in the dtype of the scales.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from numba import types
from numba.extending import intrinsic

from qmanifest.kernels import llvm_vectors as v
from qmanifest.kernels.coding import CHUNK, FLOAT_BYTES, LANES, LINE, OCTET, Coding
from qmanifest.kernels.llvm_codes import chunk_codes, chunk_indices, codes_in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_AHEAD: Final = 1 << 12
"""Bytes between the codes that are unpacked and those that are asked for."""


def _groups(context: Any, constants: Any, addresses: Any, count: Any) -> Any:  # noqa: ANN401, ARG001 - numba's types
    """Type the function."""
    *stored, written, streamed = (each.literal_value for each in constants)
    coding, put = Coding(*stored), v.store_past_cache if streamed else v.store

    def emit(_: Any, b: v.Builder, __: Any, given: Sequence[v.Value]) -> v.Value:  # noqa: ANN401 - numba's
        places = [b.extract_value(given[1], i) for i in range(4)]
        largest = _emit(b, coding, places, given[2], (written, put))
        if streamed:
            b.fence("seq_cst")  # only then do other threads see what went past
        return largest

    return types.int64(constants, addresses, count), emit


rebuilt_groups: Final[Any] = intrinsic(prefer_literal=True)(_groups)
"""Called from compiled code with constants: `Coding`, the dtype to write, and whether
to write past the cache; then the addresses of the result, codes, scales and biases, and
how many groups follow, at least one. Gives the largest bits of a scale or bias, without
their signs."""


def _emit(
    b: v.Builder,
    coding: Coding,
    places: Sequence[v.Value],
    groups: v.Value,
    to_write: tuple[str, Callable[..., None]],
) -> v.Value:
    """Emit the loop over groups, with a group unrolled."""
    out, codes, scales, biases = places
    written, put = to_write
    out_bytes = FLOAT_BYTES if written == "F32" else 2
    before, loop = b.block, b.append_basic_block("groups")
    after = b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    group = b.phi(v.I64)
    largest = b.phi(v.I64)
    for each in (group, largest):
        each.add_incoming(v.I64(0), before)
    scale, bias = (
        v.strided(b, at, group, coding.scale_bytes) for at in (scales, biases)
    )
    seen = _larger(b, coding, scale, _larger(b, coding, bias, largest))
    weights = v.Group(b, coding, scale, bias)
    octets = v.strided(b, codes, group, coding.group_bytes)
    for line in range(0, coding.group_bytes, LINE):
        v.prefetch(b, v.at(b, octets, _AHEAD + line))
    to = v.strided(b, out, group, coding.group_size * out_bytes)
    halves = coding.lookup and out_bytes == 2  # noqa: PLR2004 - bytes of half a float
    table = weights.halves(b) if halves else None
    for first in range(0, coding.group_size, CHUNK):
        packed = v.at(b, octets, first * coding.bits // OCTET)
        place = v.at(b, to, first * out_bytes)
        if coding.group_size - first < CHUNK:
            made = [weights.weights(b, codes_in_order(b, packed, coding))]
        elif table is not None:
            indices = chunk_indices(b, packed, coding)
            put(b, v.halves_of(b, table, indices), place)
            continue
        else:
            made = _chunk(b, coding, weights, packed)
        for half, each in enumerate(made):
            to_half = v.at(b, place, half * LANES * out_bytes)
            put(b, v.narrowed(b, each, written), to_half)
    following = b.add(group, v.I64(1))
    group.add_incoming(following, loop)
    largest.add_incoming(seen, loop)
    b.cbranch(b.icmp_signed("<", following, groups), loop, after)
    b.position_at_end(after)
    return seen


def _larger(b: v.Builder, coding: Coding, address: v.Value, most: v.Value) -> v.Value:
    """Take the bits of a float without its sign, where they are larger."""
    kind = v.I32 if coding.scale == "F32" else v.I16
    bits = b.zext(v.load(b, address, kind), v.I64)
    bits = b.and_(bits, v.I64((1 << (kind.width - 1)) - 1))
    return b.select(b.icmp_unsigned(">", bits, most), bits, most)


def _chunk(
    b: v.Builder, coding: Coding, weights: v.Group, packed: v.Value
) -> list[v.Value]:
    """Rebuild 32 weights: two vectors of float32, in order."""
    codes = chunk_codes(b, packed, coding)
    one, two = (weights.weights(b, each) for each in codes)
    return list(v.in_order(b, one, two) if coding.interleaved else (one, two))
