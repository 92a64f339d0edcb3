"""Tensors as found in a file, as promised by a config, and the index of those found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import msgspec

from qmanifest.dtypes import nbytes

if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Iterable, KeysView, ValuesView

D = TypeVar("D")
Shape: TypeAlias = tuple[int, ...]
"""`(out_features, in_features)`, with experts and the like in front."""


class TensorInfo(msgspec.Struct, frozen=True, gc=False):
    """A stored tensor, exactly as its header describes it.

    A frozen record of msgspec, since one is built in a twentieth of the time that a
    frozen dataclass takes, and a checkpoint has them by the hundred thousand.
    """

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
    """`codes`, `scales`, `biases`, `zeros`, ..., or `dense`."""
    dtypes: tuple[str, ...]
    """The dtypes that keep the promise; the first one is what `pack` writes."""
    shape: Shape | None
    """None where the config alone does not say and nothing else was found."""
    pointer: str
    """The config entry that the promise comes from."""
    optional: bool = False
    """Whether readers do without the tensor."""

    @property
    def nbytes(self) -> int | None:
        """Bytes promised, or None without a shape. Sized by the first dtype."""
        return None if self.shape is None else nbytes(self.dtypes[0], self.shape)


class TensorIndex(Mapping[str, TensorInfo]):
    """The stored tensors of one model by name, over all of its shards.

    The first of several tensors of one name is the one found by name; `repeats`
    has the others, since which one a loader takes depends on the loader.
    """

    __slots__ = ("_by_name", "_derived", "repeats")

    def __init__(self, tensors: Iterable[TensorInfo] = ()) -> None:
        tensors = tuple(tensors)
        names = map(attrgetter("name"), tensors)
        by_name: dict[str, TensorInfo] = dict(zip(names, tensors, strict=True))
        self.repeats: tuple[TensorInfo, ...] = ()
        if len(by_name) < len(tensors):
            by_name.update({tensor.name: tensor for tensor in reversed(tensors)})
            self.repeats = tuple(t for t in tensors if by_name[t.name] is not t)
        self._by_name = by_name
        self._derived: dict[object, Any] = {}

    @property
    def by_name(self) -> MappingProxyType[str, TensorInfo]:
        """The tensors as a plain read-only mapping, which many look-ups take faster."""
        return MappingProxyType(self._by_name)

    def derived(self, make: Callable[[TensorIndex], D]) -> D:
        """Work something out of the tensors, once: `index.derived(Evidence)`."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: D = self._derived[make]
        return found

    def __getitem__(self, name: str) -> TensorInfo:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    # What `Mapping` has for these is several times slower than the dict's own.

    @overload
    def get(self, name: str, /) -> TensorInfo | None: ...

    @overload
    def get(self, name: str, /, default: TensorInfo | D) -> TensorInfo | D: ...

    def get(self, name: str, /, default: D | None = None) -> TensorInfo | D | None:
        """Find a tensor by name."""
        return self._by_name.get(name, default)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._by_name.keys()

    def values(self) -> ValuesView[TensorInfo]:
        """The tensors."""
        return self._by_name.values()

    def items(self) -> ItemsView[str, TensorInfo]:
        """The names with their tensors."""
        return self._by_name.items()
