"""Bar 3, for small floats: dequantize into an array, beside MLX; every weight is MLX's.

Nothing is asked of the time but that it is no longer than MLX's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks import ours
from benchmarks.harness import Contender, Contest, Limit, Row, faster, within

from qmanifest.kernels import active, careful
from qmanifest.packings.arrays import Stored, storage_dtype
from qmanifest.schemes import Microscaling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Setup

    from qmanifest.kernels.base import Kernels

SHAPE: Final = (4096, 4096)
MODES: Final = {
    "mxfp4": Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    "mxfp8": Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    "nvfp4": Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
}
"""The schemes by the names of MLX's modes."""


def _setup(mode: str, dtype: str, kernels: Callable[[], Kernels] = active) -> Setup:
    """Rebuild one matrix that MLX quantized."""

    def setup(_: Path) -> Contest:
        from benchmarks import peer_mlx

        weight = peer_mlx.from_stored(ours.random_matrix(SHAPE, "F32"))
        small = peer_mlx.quantize_small(weight, mode)
        codes, scales = map(np.array, small)
        parts = {"codes": Stored("U32", codes), "scales": Stored("U8", scales)}
        out = np.empty(SHAPE, storage_dtype(dtype))
        filled = np.empty_like(out)

        def rebuild() -> object:
            chosen = kernels()
            return chosen.dequantize(MODES[mode], parts, SHAPE, out=out, dtype=dtype)

        def limits() -> Iterator[Limit]:
            rebuild()
            theirs = peer_mlx.dequantize_small(small, mode, dtype)
            differ = out.view(f"<u{out.itemsize}") != peer_mlx.bits_of(theirs)
            yield Limit("differing weights", int(np.count_nonzero(differ)), 0)

        return Contest(
            Contender(rebuild),
            {
                "mlx": Contender(lambda: peer_mlx.dequantize_small(small, mode, dtype)),
                "fill": Contender(lambda: filled.fill(1)),
            },
            limits,
        )

    return setup


ROWS: Final = (
    *(
        Row(
            f"dequantize {mode} {dtype}",
            3,
            (faster("mlx", 1), within("fill")),
            _setup(mode, dtype),
            rounds=3,
        )
        for mode in MODES
        for dtype in ("F32", "BF16")
    ),
    *(
        Row(
            f"dequantize {mode} F32, numpy alone",
            3,
            (faster("mlx", 1),),
            _setup(mode, "F32", lambda: careful.KERNELS),
            rounds=3,
        )
        for mode in MODES
    ),
)
