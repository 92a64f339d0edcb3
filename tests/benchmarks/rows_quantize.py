"""Bars 1 and 2: quantize and pack, beside `mlx.core.quantize`."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks import ours
from benchmarks.harness import Contender, Contest, Limit, Row, faster

from qmanifest.kernels import active, careful
from qmanifest.schemes import Affine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Setup

    from qmanifest.kernels.base import Kernels

WHOLE: Final = (4096, 4096)
PART: Final = (1024, 4096)
"""A quarter of the matrix, for the many combinations: all is linear in rows."""
WIDTHS: Final = (2, 3, 4, 5, 6, 8)
GROUP_SIZES: Final = (64, 128)


def _setup(
    shape: tuple[int, int],
    bits: int,
    group_size: int,
    dtype: str,
    kernels: Callable[[], Kernels] = active,
) -> Setup:
    """Quantize one matrix."""

    def setup(_: Path) -> Contest:
        from benchmarks import peer_mlx

        weight = ours.random_matrix(shape, dtype)
        copied = peer_mlx.from_stored(weight)
        return Contest(
            Contender(lambda: ours.quantize(weight, bits, group_size, kernels())),
            {"mlx": Contender(lambda: peer_mlx.quantize(copied, bits, group_size))},
        )

    return setup


def _differences(dtype: str, bits: int, group_size: int) -> int:
    """Count the words, scales and biases that are not MLX's, bit for bit."""
    from benchmarks import peer_mlx

    weight = ours.random_matrix((256, 4096), dtype, seed=bits)
    weight.array[::7, :group_size] = 0  # a group of zeros, and one of equal weights
    weight.array[::5, group_size : 2 * group_size] = weight.array[0, -1]
    mine = ours.quantize(weight, bits, group_size)
    theirs = peer_mlx.quantize(peer_mlx.from_stored(weight), bits, group_size)
    found = (mine.words, mine.scales.array, mine.biases.array)
    return sum(
        int(np.count_nonzero(one.view(f"<u{one.itemsize}") != peer_mlx.bits_of(other)))
        for one, other in zip(found, theirs, strict=True)
    )


def _equality(_: Path) -> Contest:
    """Compare every combination with MLX; nothing is timed."""
    combinations = list(product(("F32", "F16", "BF16"), WIDTHS, (32, *GROUP_SIZES)))

    def limits() -> Iterator[Limit]:
        different = sum(_differences(*each) for each in combinations)
        what = f"differing numbers, {len(combinations)} combinations"
        yield Limit(what, different, 0)

    return Contest("only compared", {}, limits)


def _torch(_: Path) -> Contest:
    """Quantize a tensor in torch, without the kernels of numba."""
    from benchmarks import peer_mlx

    from qmanifest.backends.pytorch.quantizing import by_torch
    from qmanifest.backends.pytorch.weight import tensor_of

    stored = ours.random_matrix(WHOLE, "F32")
    weight, copied = tensor_of(stored), peer_mlx.from_stored(stored)
    scheme = Affine(4, 64, ("F32",), "u32-lsb")

    def limits() -> Iterator[Limit]:
        made = by_torch(weight, scheme)
        assert made is not None
        found = (part.numpy().view("<u4") for part in made.parts.values())
        theirs = map(peer_mlx.bits_of, peer_mlx.quantize(copied, 4, 64))
        pairs = zip(found, theirs, strict=True)
        different = sum(int(np.count_nonzero(one != other)) for one, other in pairs)
        yield Limit("differing numbers", different, 0)

    return Contest(
        Contender(lambda: by_torch(weight, scheme)),
        {"mlx": Contender(lambda: peer_mlx.quantize(copied, 4, 64))},
        limits,
    )


def _name(bits: int, group_size: int, dtype: str, threads: int) -> str:
    return f"quantize {bits}-bit/{group_size} {dtype} {threads}t"


def _combinations() -> Iterator[Row]:
    """Cover every width, group size and dtype of the first bar."""
    for threads, factor in ((1, 4), (2, 6)):
        for bits in WIDTHS:
            for group_size in (32, *GROUP_SIZES) if threads == 1 else GROUP_SIZES:
                for dtype in ("F32", "BF16"):
                    least = factor if group_size in GROUP_SIZES else 3
                    yield Row(
                        _name(bits, group_size, dtype, threads),
                        1,
                        (faster("mlx", least),),
                        _setup(PART, bits, group_size, dtype),
                        threads,
                    )


def _whole() -> Iterator[Row]:
    """Cover the matrix that the bars were taken from."""
    for threads, factor in ((1, 4), (2, 6)):
        yield Row(
            f"{_name(4, 64, 'F32', threads)} 4096x4096",
            1,
            (faster("mlx", factor),),
            _setup(WHOLE, 4, 64, "F32"),
            threads,
        )


ROWS: Final = (
    Row("quantize, equal to mlx", 1, (), _equality),
    *_whole(),
    *_combinations(),
    Row(
        "quantize 4-bit/64 F32 2t, numpy alone",
        2,
        (faster("mlx", 1.3),),
        _setup(WHOLE, 4, 64, "F32", lambda: careful.KERNELS),
        threads=2,
        rounds=3,
    ),
    Row(
        "quantize 4-bit/64 F32 1t, torch alone",
        2,
        (faster("mlx", 1.2),),
        _torch,
        rounds=3,
    ),
)
