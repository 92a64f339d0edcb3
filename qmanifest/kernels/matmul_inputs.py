"""Inputs in the order in which a product meets the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from numba import types
from numba.extending import intrinsic

from qmanifest.kernels import llvm_vectors as v
from qmanifest.kernels.coding import CHUNK, FLOAT_BYTES, LANES
from qmanifest.kernels.jit import jit

if TYPE_CHECKING:
    from collections.abc import Sequence


def _apart(context: Any, source: Any, target: Any) -> Any:  # noqa: ANN401, ARG001 - numba's types
    """Type the function of one chunk: both are addresses of float32."""

    def emit(_: Any, b: v.Builder, __: Any, given: Sequence[v.Value]) -> v.Value:  # noqa: ANN401 - numba's
        half = LANES * FLOAT_BYTES
        one, two = (v.load(b, v.at(b, given[0], each), v.F32S) for each in (0, half))
        for first, place in ((0, 0), (1, half)):
            turns = [first + 2 * lane for lane in range(LANES)]
            chosen = b.shuffle_vector(one, two, v.constants(turns))
            v.store(b, chosen, v.at(b, given[1], place))
        return v.I64(0)

    return types.int64(source, target), emit


_chunk_apart: Final[Any] = intrinsic(_apart)


@jit
def evens_first(source: int, target: int, chunks: int) -> None:
    """Write, of every 32 float32, first those of even place and then the others.

    Args:
        source: the address of the inputs, all rows of them one after the other.
        target: where as many can be written.
        chunks: how many times 32 there are.

    """
    for chunk in range(chunks):
        shift = chunk * (CHUNK * FLOAT_BYTES)
        _chunk_apart(source + shift, target + shift)
