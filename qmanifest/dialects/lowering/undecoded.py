"""Formats that are recognised and measured, and whose values are not decoded here.

Each is a file that calls `undecoded` with its name, its tensors and their shapes. The
document is kept as it is stored; of its keys only their types are judged, and where it
lists what stays 16-bit, that list is matched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from pydantic import ConfigDict, Field

from qmanifest.dialects.base import (
    Dialect,
    Document,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX, components
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.lowering.unused import unused_entry
from qmanifest.errors import EmitError
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from qmanifest.evidence import Found
    from qmanifest.families import Family
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Opaque
    from qmanifest.tensors import TensorIndex, TensorInfo

Parts: TypeAlias = "Mapping[str, TensorInfo]"
"""The stored parts of a weight by role, its codes among them."""


def kept(
    key: str, texts: Iterable[str] | None, index: TensorIndex | None
) -> list[Claim]:
    """List what stays 16-bit: parameters, or modules as transformers reads them.

    Writers of several formats list parameters, where transformers asks about modules.
    """
    return [
        Claim(
            (key, number),
            Pattern(text, Syntax.EXACT if whole else Syntax.BOUNDARY),
            "keep",
            unused_entry(text, index),
            "" if whole else SUFFIX,
        )
        for number, text in enumerate(texts or ())
        for whole in (text.endswith((SUFFIX, ".bias")),)
    ]


class UndecodedConfig(Document):
    """A document of which only the method counts; other keys are kept as they are."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    quant_method: str

    def claims(self, index: TensorIndex | None) -> list[Claim]:  # noqa: ARG002 - subclasses ask
        """List the lines that name modules; there are none."""
        return []

    def every_linear(self) -> bool:
        """Whether every linear layer is quantized that no line keeps."""
        return False


class ListedConfig(UndecodedConfig):
    """A document of transformers: all linear layers are quantized but those listed."""

    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit, as transformers reads them, or whole parameters."""

    def claims(self, index: TensorIndex | None) -> list[Claim]:
        """List what stays 16-bit."""
        return kept("modules_to_not_convert", self.modules_to_not_convert, index)

    def every_linear(self) -> bool:
        """Whether every linear layer is quantized that no line keeps."""
        return True


def _parts(name: str, found: Found, index: TensorIndex) -> Parts:
    """Find the stored parts of a weight."""
    names = found.family.names
    named = {role: index.get(names.name(name, role)) for role, _ in names.suffixes}
    stored = {role: part for role, part in named.items() if part is not None}
    return {**stored, "codes": found.codes}


D = TypeVar("D", bound=UndecodedConfig)
MakeScheme: TypeAlias = "Callable[[D, str, Parts], Opaque]"
"""Makes the scheme of a weight: the document, its name and its parts as stored."""


def undecoded(
    dialect_id: str,
    title: str,
    document: type[D],
    family: Family,
    make: MakeScheme[D],
    *,
    methods: tuple[str, ...] = (),
) -> Dialect[D]:
    """Make the dialect of a format whose values are not decoded.

    Args:
        dialect_id: its name, and the `quant_method` that it goes by.
        title: what people call it.
        document: a class of its own, for its schema.
        family: how its tensors are called.
        make: makes a weight's scheme.
        methods: other values of `quant_method`.

    """
    known = (dialect_id, *methods)

    def locate(raw: Raw) -> tuple[Keys, ...]:
        return tuple(keys for keys, block in blocks(raw) if method_of(block) in known)

    def lower(said: D, place: Place, indexes: Indexes | None) -> Lowered:
        def weight(name: str, found: Found, entry: Entry | None) -> Weight | None:
            if index is None or found.family is not family:
                return None
            parts = _parts(name, found, index)
            pointer = entry.pointer if entry else place.pointer()
            return Weight(name, make(said, name, parts), pointer, names=family.names)

        index = None if indexes is None else indexes.get("")
        saying = Saying(said.claims(index), every_linear=said.every_linear())
        component, defects = lower_stored(saying, place, index, weight)
        return Lowered(Manifest(dialect_id, place.file, (component,)), defects)

    def emit(_manifest: Manifest) -> D:
        raise EmitError(f"{dialect_id} is read and measured, not written")

    return Dialect(
        id=dialect_id,
        title=title,
        file_name="config.json",
        document=document,
        locate=locate,
        components=components,
        lower=lower,
        emit=emit,
        blocks=("quantization_config",),
        emits=False,
        decodes="none",
    )
