"""Rows of an affine weight, rebuilt from packed codes into float32 or bfloat16.

Products with many inputs rebuild a block of rows and leave the rest to the BLAS. The
rows are bit for bit those of `qmanifest.backends.reference`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from numba import types
from numba.extending import intrinsic

from qmanifest.kernels import llvm_vectors as v
from qmanifest.kernels.jit import jit

if TYPE_CHECKING:
    from collections.abc import Sequence


def _row(context: Any, constants: Any, addresses: Any, groups: Any) -> Any:  # noqa: ANN401, ARG001 - numba's types
    """Type the function of one row: what it is compiled for is constant."""
    *stored, narrow = (each.literal_value for each in constants)
    coding = v.Coding(*stored)

    def emit(_: Any, b: v.Builder, __: Any, given: Sequence[v.Value]) -> v.Value:  # noqa: ANN401 - numba's
        places = [b.extract_value(given[1], i) for i in range(4)]
        _emit(b, coding, places, given[2], 2 if narrow else 4)
        return v.I64(0)

    return types.int64(constants, addresses, groups), emit


_rebuilt_row: Final[Any] = intrinsic(prefer_literal=True)(_row)


def _emit(
    b: v.Builder,
    coding: v.Coding,
    places: Sequence[v.Value],
    groups: v.Value,
    out_bytes: int,
) -> None:
    """Emit the loop over the groups of a row, with the chunks of a group unrolled."""
    out, codes, scales, biases = places
    before, loop = b.block, b.append_basic_block("groups")
    after = b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    group = b.phi(v.I64)
    group.add_incoming(v.I64(0), before)
    scale, bias = (
        v.strided(b, at, group, coding.scale_bytes) for at in (scales, biases)
    )
    weights = v.Group(b, coding, scale, bias)
    octets = v.strided(b, codes, group, coding.chunks * coding.chunk_bytes)
    to = v.strided(b, out, group, coding.group_size * out_bytes)
    for chunk in range(coding.chunks):
        packed = v.at(b, octets, chunk * coding.chunk_bytes)
        halves = [weights.weights(b, each) for each in v.chunk_codes(b, packed, coding)]
        if out_bytes != v.FLOAT_BYTES:
            halves = [v.high_halves(b, each) for each in halves]
        if coding.interleaved:
            halves[:] = v.in_order(b, *halves)
        for half, each in enumerate(halves):
            place = (chunk * v.CHUNK + half * v.LANES) * out_bytes
            v.store(b, each, v.at(b, to, place))
    following = b.add(group, v.I64(1))
    group.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, groups), loop, after)
    b.position_at_end(after)


@cache
def rebuild(coding: v.Coding, narrow: bool) -> Any:  # noqa: ANN401, FBT001 - numba has no types; a key of the cache
    """Compile, or load, the function that rebuilds rows.

    Returns:
        A function of addresses and strides in bytes: the result (float32; bfloat16 if
        `narrow`, for scales of that dtype alone) and its stride, codes and theirs,
        scales, biases and their stride; then the number of groups of a row, and of
        rows. It holds no GIL.

    """
    # Only plain constants may be closed over: numba's cache compares their bytes.
    bits, group_size, scale, lookup = coding

    def run(  # type: ignore[no-untyped-def] # noqa: ANN202, PLR0917 - compiled for int64 alone
        out,  # noqa: ANN001
        out_stride,  # noqa: ANN001
        codes,  # noqa: ANN001
        codes_stride,  # noqa: ANN001
        scales,  # noqa: ANN001
        biases,  # noqa: ANN001
        scales_stride,  # noqa: ANN001
        groups,  # noqa: ANN001
        count,  # noqa: ANN001
    ):
        for row in range(count):
            shift = row * scales_stride
            _rebuilt_row(
                (bits, group_size, scale, lookup, narrow),
                (
                    out + row * out_stride,
                    codes + row * codes_stride,
                    scales + shift,
                    biases + shift,
                ),
                groups,
            )

    return jit(run)
