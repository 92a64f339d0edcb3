"""How a weight is stored, as far as compiled products care; needs no numba."""

from __future__ import annotations

from typing import Final, NamedTuple

LANES: Final = 16
CHUNK: Final = 2 * LANES
"""Codes that are unpacked at a time."""
FLOAT_BYTES: Final = 4
LINE: Final = 64
"""Bytes that come from memory together."""
STREAMED: Final = 16
"""Bytes that are written past the cache at a time: as large arrays are aligned."""
_LARGE: Final = 1 << 25
"""Bytes of a result that no cache keeps for whoever reads it next."""
NIBBLE: Final = 4
OCTET: Final = 8


class Coding(NamedTuple):
    """What kernels are compiled for."""

    bits: int
    """1 to 8."""
    group_size: int
    """A multiple of 16, and of 32 in products."""
    scale: str
    """Dtype of scales and biases: `F32`, `F16` or `BF16`."""
    lookup: bool
    """Whether a register of 16 weights is indexed by codes of up to 4 bits."""

    @property
    def chunk_bytes(self) -> int:
        """Bytes of 32 codes."""
        return CHUNK * self.bits // OCTET

    @property
    def interleaved(self) -> bool:
        """Whether the codes of a chunk come as those of even and of odd place."""
        return self.bits == NIBBLE

    @property
    def chunks(self) -> int:
        """Chunks of a group."""
        return self.group_size // CHUNK

    @property
    def group_bytes(self) -> int:
        """Bytes of the codes of a group."""
        return self.group_size * self.bits // OCTET

    @property
    def scale_bytes(self) -> int:
        """Bytes of one scale."""
        return FLOAT_BYTES if self.scale == "F32" else 2


def streams(address: int, size: int, *, shared: bool = False) -> bool:
    """Tell whether a result of so many bytes is best written past the cache.

    A cache first reads what is about to be overwritten, and then writes it when it has
    to make room; so that a large result takes the memory's time twice. What is
    `shared` with another processor had better not lie in the cache of this one.
    """
    return (shared or size > _LARGE) and address % STREAMED == 0
