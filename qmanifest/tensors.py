"""Tensors as found in a file, as promised by a config, and the index of those found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from qmanifest.dtypes import nbytes

if TYPE_CHECKING:
    from collections.abc import Iterable

Shape: TypeAlias = tuple[int, ...]
"""`(out_features, in_features)`, with experts and the like in front."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A stored tensor, exactly as its header describes it."""

    name: str
    dtype: str
    """A code of `qmanifest.dtypes.DTYPES`."""
    shape: Shape
    begin: int
    """First byte, counted from the start of the file."""
    end: int
    """The byte after the last one."""
    file: str
    """The shard's path relative to the checkpoint."""

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes in its file."""
        return self.end - self.begin

    def __str__(self) -> str:
        """Show dtype and shape the way messages do: `F16 [4, 64]`."""
        return f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor that a config promises: one part of a weight."""

    name: str
    role: str
    """`codes`, `scales`, `biases`, `zeros`, `global_scale` or `dense`."""
    dtypes: tuple[str, ...]
    """The dtypes that keep the promise; the first one is what `pack` writes."""
    shape: Shape | None
    """None where the config alone does not say and nothing else was found."""
    pointer: str
    """The config entry that the promise comes from."""

    @property
    def nbytes(self) -> int | None:
        """Bytes promised, or None without a shape. Sized by the first dtype."""
        return None if self.shape is None else nbytes(self.dtypes[0], self.shape)


class TensorIndex(Mapping[str, TensorInfo]):
    """The stored tensors of one model by name, over all of its shards.

    The first of several tensors of one name is the one found by name; `repeats`
    has the others, since which one a loader takes depends on the loader.
    """

    __slots__ = ("_by_name", "repeats")

    def __init__(self, tensors: Iterable[TensorInfo] = ()) -> None:
        self._by_name: dict[str, TensorInfo] = {}
        self.repeats = tuple(
            tensor
            for tensor in tensors
            if self._by_name.setdefault(tensor.name, tensor) is not tensor
        )

    def __getitem__(self, name: str) -> TensorInfo:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name
