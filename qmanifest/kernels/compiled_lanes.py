"""Eight codes in a uint64, squeezed to `bits` bytes and spread again, compiled.

The three exchanges are those of `qmanifest.packings.u32_lsb`. Their masks are
arguments, so that one compiled function serves every width; the shift is the same in
all lanes, which LLVM vectorises to eight uint64 at a time.

Each uint64 is written whole, `bits` bytes after the one before it, and the next one
overwrites what is too much: one store for eight codes instead of `bits`. The last eight
are written byte by byte, as what follows belongs to others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qmanifest.kernels.jit import jit
from qmanifest.kernels.llvm_groups import load_lane, store_lane

if TYPE_CHECKING:
    import numpy.typing as npt

    from qmanifest.packings.arrays import Codes

    Lanes = npt.NDArray[np.uint64]

TAIL = 8


@jit
def squeeze(lanes: Lanes, count: int, steps: Lanes) -> None:
    """Move the codes of every lane to its lowest bits, in place."""
    stay0, arrive0, distance0 = steps[0, 0], steps[0, 1], steps[0, 2]
    stay1, arrive1, distance1 = steps[1, 0], steps[1, 1], steps[1, 2]
    stay2, arrive2, distance2 = steps[2, 0], steps[2, 1], steps[2, 2]
    for index in range(count):
        lane = lanes[index]
        lane = (lane & stay0) | ((lane >> distance0) & arrive0)
        lane = (lane & stay1) | ((lane >> distance1) & arrive1)
        lane = (lane & stay2) | ((lane >> distance2) & arrive2)
        lanes[index] = lane


@jit
def spread_codes(lanes: Lanes, count: int, steps: Lanes) -> None:
    """Move the codes of every lane to a byte each, in place."""
    stay0, arrive0, distance0 = steps[0, 0], steps[0, 1], steps[0, 2]
    stay1, arrive1, distance1 = steps[1, 0], steps[1, 1], steps[1, 2]
    stay2, arrive2, distance2 = steps[2, 0], steps[2, 1], steps[2, 2]
    for index in range(count):
        lane = lanes[index]
        lane = (lane & stay2) | ((lane & arrive2) << distance2)
        lane = (lane & stay1) | ((lane & arrive1) << distance1)
        lane = (lane & stay0) | ((lane & arrive0) << distance0)
        lanes[index] = lane


@jit
def write_lanes(lanes: Lanes, count: int, bits: int, octets: Codes, at: int) -> None:
    """Write the lowest `bits` bytes of every lane, one after the other."""
    whole = max(0, count - TAIL)
    for index in range(whole):
        store_lane(octets, at + index * bits, lanes[index])
    for index in range(whole, count):
        lane: Any = lanes[index]
        for octet in range(bits):
            octets[at + index * bits + octet] = lane & np.uint64(255)
            lane >>= np.uint64(8)


@jit
def read_lanes(lanes: Lanes, count: int, bits: int, octets: Codes, at: int) -> None:
    """Read `bits` bytes into every lane; what else is in it are its neighbour's."""
    whole = max(0, count - TAIL)
    for index in range(whole):
        lanes[index] = load_lane(octets, at + index * bits)
    for index in range(whole, count):
        lane: Any = np.uint64(0)
        for octet in range(bits):
            lane |= np.uint64(octets[at + index * bits + octet]) << np.uint64(8 * octet)
        lanes[index] = lane
