"""From parsed JSON to a document: every problem at once, each with its place."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from qmanifest.dialects.base import MOST, uncounted
from qmanifest.dialects.documents.alike import read_alike
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.findings import DefectKind, json_pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

    from qmanifest.dialects.base import D, Dialect, Place
    from qmanifest.findings import Defect

KINDS: Final = {
    "extra_forbidden": DefectKind.UNKNOWN_KEY,
    "not_an_override": DefectKind.UNKNOWN_KEY,
    "missing": DefectKind.MISSING_KEY,
    "listed_twice": DefectKind.CONTRADICTION,
}
"""pydantic's error type to the kind of defect; any other is an invalid value."""


def descend(raw: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401 - parsed JSON
    """Walk down `keys`; None where the way ends early."""
    for key in keys:
        if not isinstance(raw, dict) or key not in raw:
            return None
        raw = raw[key]
    return raw


def parse(dialect: Dialect[D], raw: Any, place: Place) -> D:  # noqa: ANN401 - JSON
    """Read the document at `place` of a parsed config file.

    Raises:
        InvalidConfigError: with every problem of the document at once; of more than
            `MOST`, the rest is counted.

    """
    value = descend(raw, place.keys)
    document = read_alike(dialect.document, value)
    if document is not None:
        return document
    try:
        return dialect.document.model_validate(value)
    except ValidationError as error:
        fields = dialect.document.model_fields.items()
        known = [field.alias or name for name, field in fields]
        known += dialect.document.vocabulary
        details = error.errors(include_url=False, include_context=False)
        defects = [_defect(detail, value, place, known) for detail in details[:MOST]]
        if len(details) > MOST:
            defects.append(uncounted(len(details) - MOST, defects[-1]))
        raise InvalidConfigError(dialect.id, defects) from None


def emitted(document: type[D], value: dict[str, Any]) -> D:
    """Make the document that a dialect emits.

    Raises:
        EmitError: something in the manifest cannot be said in it.

    """
    try:
        return document.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = json_pointer(*first["loc"])
        said = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise EmitError(f"{document.__name__} cannot say {place}: {said}") from error


def _walk(value: Any, loc: Sequence[str | int]) -> list[str | int]:  # noqa: ANN401 - JSON
    """Keep what of pydantic's path is in the JSON: no union tags, no `[key]` marks."""
    parts: list[str | int] = []
    for number, part in enumerate(loc):
        if _holds(value, part):
            value = value[part]
        elif number + 1 < len(loc) or part == "[key]":
            continue
        parts.append(part)
    return parts


def _holds(value: Any, part: str | int) -> bool:  # noqa: ANN401 - parsed JSON
    """Whether a part of a path leads into an object or a list."""
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _defect(
    detail: ErrorDetails,
    value: Any,  # noqa: ANN401 - parsed JSON
    place: Place,
    known: Sequence[str],
) -> Defect:
    """Turn one of pydantic's errors into a defect with its place."""
    parts = _walk(value, detail["loc"])
    kind = KINDS.get(detail["type"], DefectKind.INVALID_VALUE)
    key = str(parts[-1]) if parts else ""
    found = shown(detail["input"])
    if kind is DefectKind.UNKNOWN_KEY:
        near = get_close_matches(key, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"remove {key!r}"
        return place.defect(kind, f"unknown key {key!r}", *parts, hint=hint)
    if kind is DefectKind.MISSING_KEY:
        hint = f"add {key!r}"
        return place.defect(kind, f"key {key!r} is missing", *parts, hint=hint)
    where = ".".join(str(part) for part in parts) or "the document"
    message = f"{where} is {found}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return place.defect(kind, message, *parts, actual=found)


def shown(value: object) -> str:
    """Show a value in a message, short enough for one line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - a line
