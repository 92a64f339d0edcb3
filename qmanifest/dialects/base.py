"""What a dialect is: a document model, and the way to and from manifests.

A dialect is a frozen value in a module of its own, listed by hand in `DIALECTS`. It
knows nothing of rules, and rules know nothing of it: what a document says that cannot
be right leaves `lower` as defects beside the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
)

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from qmanifest.findings import (
    Defect,
    DefectKind,
    JsonValue,
    Location,
    Problem,
    Severity,
    json_pointer,
)
from qmanifest.tensors import TensorIndex

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest
    from qmanifest.patterns import Pattern

Raw: TypeAlias = Mapping[str, Any]
"""A config file's JSON object, as parsed."""
Keys: TypeAlias = tuple[str, ...]
"""The way from the top of a config file down to a document."""
Indexes: TypeAlias = Mapping[str, TensorIndex]
"""The stored tensors of each component that was found, by component name."""
Decoded: TypeAlias = Literal["all", "most", "none"]
MOST: Final = 1_000
"""Defects of one sort in one document that are reported one by one."""


class Document(BaseModel):
    """A config exactly as stored: same keys, same nesting, no defaults filled in."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        defer_build=True,  # a run reads documents of one dialect
    )

    vocabulary: ClassVar[tuple[str, ...]] = ()
    """Keys of nested values, offered as "did you mean" beside the document's own."""
    independent: ClassVar[str | None] = None
    """Field of an object, without an alias, whose members are valid or not each by
    itself: by the length of its key, and by its value whatever its key."""

    editor_schema: str | None = Field(default=None, alias="$schema")
    """For editors alone: where the document's JSON Schema is. Never fetched."""

    def to_json(self) -> dict[str, JsonValue]:
        """Give back the document's JSON, with just the keys that it came with."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


D = TypeVar("D", bound=Document)


class Place(msgspec.Struct, frozen=True):
    """Where a document lies, so that every fact about it can be pointed at."""

    file: str | None = None
    keys: Keys = ()

    def pointer(self, *parts: str | int) -> str:
        """Point at a value of the document, counted from the file's top."""
        return json_pointer(*self.keys, *parts)

    def defect(
        self,
        kind: DefectKind,
        message: str,
        *parts: str | int,
        tensor: str | None = None,
        also: tuple[Location, ...] = (),
        expected: JsonValue = None,
        actual: JsonValue = None,
        hint: str | None = None,
        severity: Severity | None = None,
    ) -> Defect:
        """Build a defect of the value at `parts`."""
        at = Location(self.file, self.pointer(*parts), tensor)
        problem = Problem(message, (at, *also), expected, actual, hint, severity)
        return Defect(kind, problem)


def few(defects: Iterable[Defect]) -> Iterator[Defect]:
    """Pass on the first `MOST` defects, and then one that counts the rest."""
    last, more = None, 0
    for number, last in enumerate(defects, 1):
        if number <= MOST:
            yield last
        else:
            more += 1
    if last is not None and more:
        yield uncounted(more, last)


def uncounted(more: int, like: Defect) -> Defect:
    """Build the defect that stands for `more` others."""
    problem = Problem(
        f"{more:,} more like this, not listed",
        tuple(Location(place.file) for place in like.problem.at[:1]),
        hint="correct those that are listed, and check again",
        severity=like.problem.severity,
    )
    return Defect(like.kind, problem)


class ComponentNames(msgspec.Struct, frozen=True):
    """A component as the config names it, before its tensors are found."""

    name: str
    pointer: str
    patterns: tuple[Pattern, ...] = ()
    """What the config expects to find in it, quantized."""
    keeps: tuple[Pattern, ...] = ()
    """What stays 16-bit where it is found."""


class Lowered(msgspec.Struct, frozen=True):
    """A manifest, and what was wrong with the document that it came from."""

    manifest: Manifest
    defects: tuple[Defect, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialect(Generic[D]):
    """One config vocabulary."""

    id: str
    title: str
    file_name: str
    """The file that a document of this dialect is written to."""
    document: type[D]
    locate: Callable[[Raw], tuple[Keys, ...]]
    """Where documents of this dialect lie in a config file. The first one counts, the
    others ought to say the same; none means that the file is of another dialect."""
    components: Callable[[D, Place], tuple[ComponentNames, ...]]
    lower: Callable[[D, Place, Indexes | None], Lowered]
    """Document to manifest; pure. Without indexes patterns stay unexpanded."""
    emit: Callable[[Manifest], D]
    """Manifest to document; raises `EmitError` where the vocabulary has no words."""
    blocks: tuple[str, ...] = ()
    """Keys of `file_name` that hold the document; none where it is the whole file."""

    emits: bool = True
    """Whether any manifest can be written in this vocabulary here."""
    decodes: Decoded = "all"
    """Of how many of the format's weights the values are decoded."""
    tables: bool = False
    """Whether its writers quantize embeddings and heads too."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Keys that say what another key of the document says, in other files."""
    akin: tuple[str, ...] = ()
    """Ids of dialects whose documents in other files say a part of the same."""

    def wrap(self, document: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Put a document's JSON where a file of this dialect has it."""
        return dict.fromkeys(self.blocks, document) if self.blocks else document
