"""`qmanifest pack` of a checkpoint of 1 GB, beside the obvious MLX script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from benchmarks import checkpoints
from benchmarks.harness import Contender, Contest, Limit, Row, faster
from benchmarks.processes import Peak

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MATRICES: Final = 60
WIDTH: Final = 4096
MEGABYTES: Final = int(os.environ.get("BENCH_PACK_MB", "1000"))
"""Size of the checkpoint; less makes a quicker run with other figures."""
MLX: Final = """\
import sys
from pathlib import Path
import mlx.core as mx
mx.set_default_device(mx.cpu)
source, out = map(Path, sys.argv[1:])
out.mkdir(exist_ok=True)
for path in sorted(source.glob("*.safetensors")):
    packed = {}
    for name, weight in mx.load(str(path)).items():
        words, scales, biases = mx.quantize(weight, group_size=64, bits=4)
        module = name.removesuffix(".weight")
        packed[name] = words
        packed[module + ".scales"], packed[module + ".biases"] = scales, biases
    mx.save_safetensors(str(out / path.name), packed)
"""


def _setup(folder: Path) -> Contest:
    source = folder / "dense"
    rows = max(1, MEGABYTES * 1_000_000 // (MATRICES * WIDTH * 2))
    checkpoints.write_matrices(source, MATRICES, (rows, WIDTH))
    config = str(source / "quant_config.json")
    mine = Peak(
        (
            *("-m", "qmanifest", "pack", str(source), "--config", config),
            *("-o", str(folder / "ours"), "--force"),
        )
    )
    theirs = Peak(("-c", MLX, str(source), str(folder / "mlx")))

    def limits() -> Iterator[Limit]:
        yield Limit("memory beside mlx's", mine.megabytes / theirs.megabytes, 1)

    peers = {"mlx script": Contender(theirs)}
    return Contest(Contender(mine), peers, limits)


ROWS: Final = tuple(
    Row(
        f"pack {MEGABYTES} MB F16 to 4-bit/64 {threads}t",
        0,
        (faster("mlx script", 3),),
        _setup,
        threads=threads,
        rounds=2,
        warm=False,
    )
    for threads in (1, 2)
)
