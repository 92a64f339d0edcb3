"""Formats that are recognised and measured, and whose values are not decoded here.

Each is a file that calls `undecoded` with its name, its tensors and their shapes. The
document is kept as it is stored; of its keys only their types are judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ConfigDict, Field

from qmanifest.dialects.base import (
    ComponentNames,
    Dialect,
    Document,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.blocks import blocks, method_of
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.errors import EmitError
from qmanifest.manifest import Manifest, Weight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from qmanifest.evidence import Found
    from qmanifest.families import Family
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Opaque
    from qmanifest.tensors import TensorInfo

Parts: TypeAlias = "Mapping[str, TensorInfo]"
"""The stored parts of a weight by role, its codes among them."""
MakeScheme: TypeAlias = "Callable[[Parts], Opaque]"
"""Makes the scheme of a weight from its parts as they are stored."""


class UndecodedConfig(Document):
    """A document of which only the method counts; other keys are kept as they are."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    quant_method: str


def undecoded(
    dialect_id: str,
    title: str,
    document: type[UndecodedConfig],
    family: Family,
    make: MakeScheme,
    *,
    methods: tuple[str, ...] = (),
) -> Dialect[UndecodedConfig]:
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

    def components(
        _document: UndecodedConfig, place: Place
    ) -> tuple[ComponentNames, ...]:
        return (ComponentNames("", place.pointer()),)

    def lower(
        _document: UndecodedConfig, place: Place, indexes: Indexes | None
    ) -> Lowered:
        def weight(name: str, found: Found, _said: Entry | None) -> Weight | None:
            if index is None or found.family is not family:
                return None
            parts = {"codes": found.codes}
            for role, _ in family.names.suffixes:
                tensor = index.get(family.names.name(name, role))
                if tensor is not None:
                    parts[role] = tensor
            return Weight(name, make(parts), place.pointer(), names=family.names)

        index = None if indexes is None else indexes.get("")
        saying = Saying((), every_linear=False)
        component, defects = lower_stored(saying, place, index, weight)
        return Lowered(Manifest(dialect_id, place.file, (component,)), defects)

    def emit(_manifest: Manifest) -> UndecodedConfig:
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
