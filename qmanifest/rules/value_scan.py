"""One pass over the bytes of a checkpoint's quantized and kept tensors.

Tensors are read in pieces that stay in the processor's cache, and judged as unsigned
integers: the exponent bits tell a number from NaN and infinity several times faster
than floats do. What a sound piece cannot have is counted only where its greatest or
least number shows that it is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from qmanifest.families import WORDS
from qmanifest.reading.tensor_bytes import iter_tensor
from qmanifest.schemes import Microscaling, ZeroPoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorInfo

_EXPONENTS: Final = {
    "F16": ("<u2", 0x7FFF, 0x7C00),
    "BF16": ("<u2", 0x7FFF, 0x7F80),
    "F32": ("<u4", 0x7FFFFFFF, 0x7F800000),
}
"""Per dtype: its bits as an integer, all but the sign, and all exponent bits."""
_LEAST: Final = {"F16": 0x0002, "BF16": 0x33D7, "F32": 0x33D6BF95}
"""Per dtype: the bits of 1e-7, the least scale that MLX writes, rounded up."""


class Progress(Protocol):
    """Told after every piece how many bytes of how many are read."""

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Learn that `done` bytes are read, the last of them of tensor `name`."""


@dataclass(slots=True)
class Counts:
    """What the elements of one stored tensor are."""

    tensor: TensorInfo
    role: str
    """The part it plays; `kept` for a tensor that stays 16-bit."""
    weight: Weight | None
    elements: int = 0
    not_finite: int = 0
    """NaN and infinity; for bytes that hold a number format, its NaN codes."""
    zeros: int = 0
    """Elements that are zero, of either sign."""
    least: int = 0
    """Scales no larger than the least that MLX writes, which a constant group has."""
    out_of_range: int = 0
    """Zero points beyond the largest code."""


_SCANS: Final[WeakKeyDictionary[Checkpoint, tuple[Counts, ...]]] = WeakKeyDictionary()
"""What was counted, for as long as the checkpoint is in use: five rules ask for it."""


def scan(
    checkpoint: Checkpoint, progress: Progress | None = None
) -> tuple[Counts, ...]:
    """Read every quantized and kept tensor once, and count what it holds.

    Tensors that reach beyond their file are left out: they are cut (QM002).
    """
    if checkpoint not in _SCANS:
        _SCANS[checkpoint] = _scan(checkpoint, progress)
    return _SCANS[checkpoint]


def _scan(checkpoint: Checkpoint, progress: Progress | None) -> tuple[Counts, ...]:
    """Read what `_wanted` lists, telling how far it got."""
    wanted = list(_wanted(checkpoint))
    total, done = sum(counts.tensor.nbytes for _, counts in wanted), 0
    for store, counts in wanted:
        tensor = counts.tensor
        for piece in iter_tensor(store.root, tensor):
            if tensor.dtype in _EXPONENTS:
                _floats(counts, piece)
            elif tensor.dtype in WORDS:
                _integers(counts, piece)
            done += len(piece)
            if progress is not None:
                progress(done, total, tensor.name)
    return tuple(counts for _, counts in wanted)


def _wanted(checkpoint: Checkpoint) -> Iterator[tuple[Store, Counts]]:
    """List the tensors to read: parts of weights, and what is kept."""
    for component, store in checkpoint.found():
        sizes = {header.file: header.size for header in store.headers}
        parts = [
            (part.name, part.role, weight)
            for weight in component.weights
            for part in weight.parts()
        ]
        kept = [(each.name, "kept", None) for each in component.kept]
        for name, role, weight in (*parts, *kept):
            tensor = store.index.get(name)
            if tensor is not None and tensor.end <= sizes[tensor.file]:
                yield store, Counts(tensor, role, weight)


def _floats(counts: Counts, piece: memoryview) -> None:
    """Count a piece of floats."""
    word, magnitude, exponent = _EXPONENTS[counts.tensor.dtype]
    bits = np.frombuffer(piece, word) & np.array(magnitude, word)
    counts.elements += bits.size
    if bits.max(initial=0) >= exponent:
        counts.not_finite += int(np.count_nonzero(bits >= exponent))
    lowest = bits.min(initial=exponent)
    if lowest == 0:
        counts.zeros += int(np.count_nonzero(bits == 0))
    least = _LEAST[counts.tensor.dtype]
    if counts.role == "scales" and lowest <= least:
        counts.least += int(np.count_nonzero(bits <= least))


def _integers(counts: Counts, piece: memoryview) -> None:
    """Count a piece of words, or of bytes that hold a number format."""
    octets = np.frombuffer(piece, "u1")
    counts.elements += octets.size
    counts.zeros += octets.size - int(np.count_nonzero(octets))
    element = _element(counts)
    if element == "e8m0":
        counts.not_finite += int(np.count_nonzero(octets == 0xFF))  # noqa: PLR2004 - NaN
    elif element == "e4m3":
        counts.not_finite += int(np.count_nonzero(octets & 0x7F == 0x7F))  # noqa: PLR2004 - NaN
    scheme = counts.weight.scheme if counts.weight else None
    if isinstance(scheme, ZeroPoint) and counts.role == "zeros":
        counts.out_of_range += int(np.count_nonzero(octets >> scheme.bits))


def _element(counts: Counts) -> str | None:
    """Name the 8-bit number format of a part's bytes, if it has one."""
    scheme = counts.weight.scheme if counts.weight else None
    if not isinstance(scheme, Microscaling):
        return None
    if counts.role == "scales":
        return scheme.scale
    return scheme.element if counts.role == "codes" else None
