"""Read the JSON text of a config or an index file into a value and its defects."""

from __future__ import annotations

import msgspec

from qmanifest.findings import (
    Defect,
    DefectKind,
    JsonValue,
    Location,
    Problem,
    Severity,
)
from qmanifest.reading import limits
from qmanifest.reading.collector import collector_paused
from qmanifest.reading.json_decode import decode
from qmanifest.reading.json_error import JsonError
from qmanifest.reading.json_locate import locate, locate_all, place
from qmanifest.reading.json_plain import decode_plain

__all__ = ["JsonText", "locate", "locate_all", "parse_json"]


class JsonText(msgspec.Struct, frozen=True):
    """A JSON file as read: what it says, its text, and what is wrong with it."""

    value: JsonValue
    """None too where the text is refused; see `readable`."""
    text: str
    """Without a byte order mark; with U+FFFD where it is not UTF-8."""
    file: str
    defects: tuple[Defect, ...] = ()

    @property
    def readable(self) -> bool:
        """Whether `value` is what the file says."""
        return all(d.problem.severity is Severity.WARNING for d in self.defects)


def parse_json(data: bytes, file: str, limit_depth: int = limits.MAX_DEPTH) -> JsonText:
    """Parse JSON strictly (see `json_decode`); whatever is wrong becomes a defect."""
    try:
        with collector_paused():
            plain = decode_plain(data, limit_depth)
            if plain is not None:
                return JsonText(plain, data.decode(), file)
            decoded = decode(data, limit_depth)
    except JsonError as error:
        text = data.decode("utf-8-sig", "replace")
        return JsonText(None, text, file, (_refusal(error, text, file),))
    defects = (_byte_order_mark(file),) if decoded.has_bom else ()
    return JsonText(decoded.value, decoded.text, file, defects)


def _refusal(error: JsonError, text: str, file: str) -> Defect:
    line, column = place(text, error.offset)
    at = [Location(file, error.pointer, line=line, column=column)]
    where = "" if error.byte is None else f", at byte {error.byte:,}"
    if error.related is not None:
        line, column = place(text, error.related)
        at.append(Location(file, error.pointer, line=line, column=column))
    message = f"{error.message}{where}"
    return Defect(error.kind, Problem(message, tuple(at), hint=error.hint))


def _byte_order_mark(file: str) -> Defect:
    return Defect(
        DefectKind.UNREADABLE_JSON,
        Problem(
            "the file begins with a byte order mark, which JSON does not allow",
            (Location(file=file, line=1, column=1),),
            hint="save the file as UTF-8 without BOM",
            severity=Severity.WARNING,
        ),
    )
