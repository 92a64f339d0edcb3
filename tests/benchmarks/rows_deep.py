"""Bar 10: reading every byte of a checkpoint (`--deep`), and hashing its shards."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

import numpy as np
from benchmarks import checkpoints, ours
from benchmarks.harness import Contender, Contest, Limit, Row, faster, within

from qmanifest.testing.tables import write_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from qmanifest.packings.arrays import AnyArray

PIECE: Final = 1 << 20
SHAPE: Final = (4096, 4096)
WEIGHTS: Final = 8


def _pass(folder: Path, look: Callable[[AnyArray], object], word: str) -> None:
    """Read all shards in pieces, and look at each."""
    buffer = bytearray(PIECE)
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb", buffering=0) as file:
            while read := file.readinto(buffer):
                look(np.frombuffer(buffer, word, read // np.dtype(word).itemsize))


def _scan(folder: Path) -> Callable[[], int]:
    """Count what is not finite, with the pass that `--deep` makes."""
    from qmanifest.checkpoint import open_checkpoint
    from qmanifest.rules.value_scan import scan

    def run() -> int:
        counts = scan(open_checkpoint(folder))
        assert counts
        return sum(each.not_finite for each in counts)

    return run


def _packed(folder: Path) -> Contest:
    """Scan packed weights of 4 bits: mostly words, some scales."""
    packed = ours.quantize(ours.random_matrix(SHAPE, "F16"), 4, 64)
    content = {}
    for number in range(WEIGHTS):
        module = f"model.layers.{number}.mlp.up_proj"
        for part, role in (("weight", "codes"), ("scales",) * 2, ("biases",) * 2):
            stored = packed.parts[role]
            content[f"{module}.{part}"] = (
                stored.dtype,
                stored.shape,
                stored.array.tobytes(),
            )
    write_raw(folder / "model.safetensors", content)
    checkpoints.write_glob_config(folder)
    xor = np.bitwise_xor.reduce
    return Contest(
        Contender(_scan(folder)),
        {"xor of every byte": Contender(lambda: _pass(folder, xor, "<u8"))},
    )


def _dense(folder: Path) -> Contest:
    """Scan kept tensors of float16 for what is not finite."""
    matrix = ours.random_matrix(SHAPE, "F16")
    matrix.array[7, 7] = np.inf
    content = {
        f"model.layers.{number}.norm.weight": ("F16", SHAPE, matrix.array.tobytes())
        for number in range(WEIGHTS // 2)
    }
    write_raw(folder / "model.safetensors", content)
    checkpoints.write_glob_config(folder, keep=True)
    run = _scan(folder)

    def limits() -> Iterator[Limit]:
        yield Limit("infinities missed", len(content) - run(), 0)

    finite = Contender(lambda: _pass(folder, np.isfinite, "<f2"))
    xor = Contender(lambda: _pass(folder, np.bitwise_xor.reduce, "<u8"))
    peers = {"read and np.isfinite": finite, "xor of every byte": xor}
    return Contest(Contender(run), peers, limits)


def _hashed(folder: Path) -> Contest:
    """Hash shards of one size on two threads, and on one."""
    from qmanifest.reading.hashing import hash_shards

    checkpoints.write_matrices(folder, WEIGHTS, SHAPE, per_shard=2)

    def differing() -> Iterator[Limit]:
        files = {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
        wrong = [
            each.file
            for each in hash_shards(folder, 2)
            if each.sha256 != sha256(files.pop(each.file)).hexdigest()
        ]
        yield Limit("wrong or missing digests", len(wrong) + len(files), 0)

    one = Contender(lambda: hash_shards(folder, 1))
    two = Contender(lambda: hash_shards(folder, 2))
    return Contest(two, {"hash on one thread": one}, differing)


ROWS: Final = (
    Row("deep, packed 4-bit", 10, (within("xor of every byte", 1.25),), _packed),
    Row(
        "deep, kept F16",
        10,
        (faster("read and np.isfinite", 4), within("xor of every byte")),
        _dense,
    ),
    Row(
        "hash shards 2t",
        10,
        (faster("hash on one thread", 1.7),),
        _hashed,
        threads=2,
    ),
)
