"""From a config file's object to its document: which dialect, where, and what is wrong.

Exactly one dialect has to recognise the file. A document that lies in it twice is
read once, and its twin is compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects import IDS, recognize
from qmanifest.dialects.base import ComponentNames, Lowered, Place
from qmanifest.dialects.documents.elsewhere import elsewhere
from qmanifest.dialects.documents.parsing import descend, parse, shown
from qmanifest.errors import InvalidConfigError
from qmanifest.findings import (
    Defect,
    DefectKind,
    Location,
    Problem,
    Severity,
    json_pointer,
)
from qmanifest.patterns import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.dialects.base import Dialect, Document, Indexes, Keys, Raw

TWINS: Final = 100
"""Differences of two copies that are reported one by one."""
_NAMED: Final = 8
"""Keys that a message names."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a config file turned out to be."""

    dialect: Dialect[Any] | None = None
    document: Document | None = None
    place: Place = field(default_factory=Place)
    components: tuple[ComponentNames, ...] = ()
    """The components that the document names."""
    defects: tuple[Defect, ...] = ()

    def lower(self, indexes: Indexes | None) -> Lowered | None:
        """Lower the document, if there is one."""
        if self.dialect is None or self.document is None:
            return None
        return self.dialect.lower(self.document, self.place, indexes)


def read_promise(
    file: str,
    raw: Raw,
    *,
    block: Raw | None = None,
    forced: Dialect[Any] | None = None,
    most_patterns: int,
) -> Promise:
    """Recognise and read the document of a config file.

    Args:
        file: its name.
        raw: its top-level object.
        block: the part of it that has to do with quantization, for messages.
        forced: the dialect, where it is not to be recognised.
        most_patterns: patterns of one document, counted for each component that they
            are matched with.

    """
    chosen = (forced,) if forced else recognize(raw)
    if len(chosen) != 1:
        return Promise(defects=(_unknown(file, raw, block or raw, chosen),))
    (dialect,) = chosen
    places = dialect.locate(raw) or ((),)
    place = Place(file, places[0])
    twins = tuple(islice(_twins(file, raw, places), TWINS))
    try:
        document = parse(dialect, raw, place)
    except InvalidConfigError as error:
        return Promise(dialect, place=place, defects=(*error.defects, *twins))
    components = dialect.components(document, place)
    if _has_more(components, most_patterns):
        many = place.defect(
            DefectKind.OVER_LIMIT,
            f"{file} has more than {most_patterns:,} patterns",
            hint="write plain names instead of patterns, or fewer patterns",
        )
        return Promise(dialect, place=place, defects=(many, *twins))
    return Promise(dialect, document, place, components, twins)


def _has_more(components: Sequence[ComponentNames], most: int) -> bool:
    """Whether the components have more patterns than `most`; plain names are free."""
    syntaxes = (
        list(map(attrgetter("syntax"), patterns))
        for component in components
        for patterns in (component.patterns, component.keeps)
    )
    return sum(len(each) - each.count(Syntax.EXACT) for each in syntaxes) > most


def _unknown(
    file: str, raw: Raw, block: Raw, chosen: tuple[Dialect[Any], ...]
) -> Defect:
    """Report a config that no dialect, or more than one, recognises."""
    foreign = None if chosen else elsewhere(raw)
    if foreign is not None:
        problem = Problem(
            f"{file} is a config of {foreign}: it describes no safetensors",
            (Location(file, ""),),
            hint="name the config of the safetensors files, if there is one",
            severity=Severity.NOTE,
        )
        return Defect(DefectKind.NO_CONFIG, problem)
    known = ", ".join(IDS)
    if chosen:
        names = " and ".join(dialect.id for dialect in chosen)
        message = f"{file} has keys of {names} at once"
    else:
        message = f"no dialect recognises {file}, which has {_label(block)}"
    problem = Problem(
        message,
        (Location(file, ""),),
        expected=known,
        hint=f"known dialects: {known}; force one with --dialect",
    )
    return Defect(DefectKind.NO_CONFIG, problem)


def _label(block: Raw) -> str:
    """Say what an unknown config calls itself, or else some of its keys."""
    for key in ("quant_method", "method"):
        if isinstance(block.get(key), str):
            return f"{key} {shown(block[key])}"
    keys = ", ".join(shown(key) for key in sorted(block)[:_NAMED])
    return f"keys {keys}" if keys else "no keys"


def _twins(file: str, raw: Raw, places: tuple[Keys, ...]) -> Iterator[Defect]:
    """Compare the copies of a document within one file, field by field."""
    first, *others = ((keys, descend(raw, keys)) for keys in places)
    for keys, other in others:
        for key in sorted({*first[1], *other}):
            ours, theirs = (
                shown(each[key]) if key in each else "absent"
                for each in (first[1], other)
            )
            if first[1].get(key) != other.get(key) or "absent" in {ours, theirs}:
                one, two = json_pointer(*first[0], key), json_pointer(*keys, key)
                problem = Problem(
                    f"{one} is {ours} and its twin {two} is {theirs}",
                    (Location(file, one), Location(file, two)),
                    expected=first[1].get(key),
                    actual=other.get(key),
                    hint="make both say the same; loaders differ in which they read",
                )
                yield Defect(DefectKind.TWINS_DISAGREE, problem)
