"""The manifest: what a config promises, in one form for every dialect.

A manifest has components (the models it describes), a component has weights (one
logical tensor each, stored as several parts) and kept tensors, and its entries say
which line of the config claimed which names. Everything is plain frozen data, so the
lossless JSON form is the data itself: see `to_json` and `from_json`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from qmanifest.families import MLX_NAMES, PartNames
from qmanifest.findings import Severity
from qmanifest.patterns import Pattern
from qmanifest.schemes import Scheme
from qmanifest.tensors import Shape, TensorInfo, TensorSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Weight:
    """One logical weight that is stored quantized."""

    name: str
    """The tensor's name in the 16-bit model, `X.weight`."""
    scheme: Scheme
    pointer: str
    """The config entry that makes this weight what it is."""
    shape: Shape | None = None
    """Logical shape, where the config declares it."""
    names: PartNames = MLX_NAMES

    @property
    def codes(self) -> str:
        """Name of the stored tensor that holds the codes."""
        return self.names.name(self.name, "codes")

    def part(self, role: str) -> str:
        """Name the stored tensor that plays `role`."""
        return self.names.name(self.name, role)

    def logical(self, codes: TensorInfo) -> Shape | None:
        """Shape that stored `codes` show; None where they are no codes of the scheme.

        Of a layout that pads rows it is the largest shape that is stored so.
        """
        (_, dtypes, _), *_ = self.scheme.parts(None)
        return self.scheme.logical(codes.shape) if codes.dtype in dtypes else None

    def parts(self, shape: Shape | None = None) -> tuple[TensorSpec, ...]:
        """Promise every stored tensor, for `shape` or else the declared shape."""
        optional = self.scheme.optional
        return tuple(
            TensorSpec(
                self.names.name(self.name, role),
                role,
                dtypes,
                size,
                self.pointer,
                role in optional,
            )
            for role, dtypes, size in self.scheme.parts(shape or self.shape)
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """One tensor that stays 16-bit on purpose."""

    name: str
    pointer: str
    dtypes: tuple[str, ...]
    """The dtypes that keep the promise."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the config that claims names, and what it claimed."""

    pointer: str
    pattern: Pattern
    purpose: Literal["quantize", "keep"]
    matches: tuple[str, ...] = ()
    """Names of the component that the pattern matches; none without an index."""
    unused: Severity | None = Severity.ERROR
    """How bad it is when nothing matches; None where that is no news."""
    appended: str = ""
    """What the dialect appends to the text to name a tensor: `.weight` for modules."""
    reader: str = ""
    """Id of the reader whose meaning of the text counts, where formats have several."""
    also_read: tuple[str, ...] = ()
    """Ids of the readers that read the same line and may mean other names by it."""


@dataclass(frozen=True, slots=True)
class Component:
    """One model of the manifest."""

    name: str
    """Empty where the config describes a single model."""
    weights: tuple[Weight, ...] = ()
    kept: tuple[Kept, ...] = ()
    entries: tuple[Entry, ...] = ()
    exhaustive: bool = False
    """Whether the config means to name every matrix, so that an unnamed one is news."""
    pointer: str = ""
    """The part of the config that describes this component."""
    every_linear: bool = False
    """Whether every linear layer is quantized that no entry keeps."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a config promises about every weight of a checkpoint."""

    dialect: str
    config_file: str | None = None
    components: tuple[Component, ...] = field(default=())

    def weights(self) -> Iterator[tuple[Component, Weight]]:
        """Walk over every weight with its component."""
        for component in self.components:
            for weight in component.weights:
                yield component, weight

    def component(self, name: str) -> Component:
        """Find a component by name.

        Raises:
            KeyError: there is none.

        """
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)


@cache
def manifest_adapter() -> TypeAdapter[Manifest]:
    """Build pydantic's view of the manifest, for its JSON and its schema."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - building a manifest needs none

    return TypeAdapter(Manifest)


def to_json(manifest: Manifest) -> str:
    """Write the manifest in its own JSON form, which loses nothing."""
    return manifest_adapter().dump_json(manifest, indent=2).decode()


def from_json(text: str | bytes) -> Manifest:
    """Read what `to_json` wrote.

    Raises:
        pydantic.ValidationError: the text is not a manifest.

    """
    return manifest_adapter().validate_json(text)
