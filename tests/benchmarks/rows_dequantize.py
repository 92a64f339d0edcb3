"""Bar 3: dequantize into an array, beside MLX and beside filling the array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks import ours
from benchmarks.harness import Contender, Contest, Limit, Row, faster, within

from qmanifest.kernels import active, careful
from qmanifest.packings.arrays import storage_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Setup

    from qmanifest.kernels.base import Kernels

SHAPE: Final = (4096, 4096)


def _setup(
    bits: int, group_size: int, dtype: str, kernels: Callable[[], Kernels] = active
) -> Setup:
    """Rebuild one matrix; every bit has to be MLX's."""

    def setup(_: Path) -> Contest:
        from benchmarks import peer_mlx

        packed = ours.quantize(ours.random_matrix(SHAPE, dtype), bits, group_size)
        out = np.empty(SHAPE, storage_dtype(dtype))
        filled = np.empty_like(out)
        parts = peer_mlx.parts_of(packed)

        def limits() -> Iterator[Limit]:
            ours.dequantize(packed, out, kernels())
            theirs = peer_mlx.dequantize(parts, bits, group_size)
            same = out.view(f"<u{out.itemsize}") == peer_mlx.bits_of(theirs)
            yield Limit("differing weights", out.size - int(np.count_nonzero(same)), 0)

        return Contest(
            Contender(lambda: ours.dequantize(packed, out, kernels())),
            {
                "mlx": Contender(lambda: peer_mlx.dequantize(parts, bits, group_size)),
                "fill": Contender(lambda: filled.fill(1)),
            },
            limits,
        )

    return setup


ROWS: Final = (
    *(
        Row(
            f"dequantize {bits}-bit/{group_size} F32",
            3,
            (faster("mlx", 12), within("fill", 1.25)),
            _setup(bits, group_size, "F32"),
        )
        for bits, group_size in ((4, 64), (3, 64), (8, 64), (8, 32))
    ),
    Row(
        "dequantize 4-bit/64 BF16",
        3,
        (faster("mlx", 12), within("fill")),
        _setup(4, 64, "BF16"),
    ),
    *(
        Row(
            f"dequantize {bits}-bit/64 F32, numpy alone",
            3,
            (faster("mlx", 2.5),),
            _setup(bits, 64, "F32", lambda: careful.KERNELS),
            rounds=3,
        )
        for bits in (4, 3, 8)
    ),
)
