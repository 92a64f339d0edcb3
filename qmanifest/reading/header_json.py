"""Decode the JSON of a header, or say which byte of the file is wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from qmanifest.findings import Defect, DefectKind, Location, Problem
from qmanifest.reading.header_frame import LENGTH_BYTES
from qmanifest.reading.json_decode import decode
from qmanifest.reading.json_error import JsonError, LoneSurrogateError
from qmanifest.reading.json_tokens import first_outside_strings

if TYPE_CHECKING:
    from qmanifest.findings import JsonValue

METADATA: Final = "__metadata__"
"""The one member of a header that is no tensor: a map of strings, or null."""

_DAMAGED: Final = "download or write the file again"
_MINUS_ZERO: Final = re.compile(r"-0(?![0-9.eE])")


def decode_header(data: bytes, file: str) -> dict[str, JsonValue] | Defect:
    """Decode a header that begins with `{` into its members.

    A faster decoder may take the place of `decode` here. It must refuse what that
    refuses; repeated keys show in the count of members (see `json_decode`).
    """
    try:
        decoded = decode(data)
        if decoded.structure.has_minus:
            _refuse_minus_zero(decoded.text)
    except JsonError as error:
        return _header_defect(error, data, file)
    assert isinstance(decoded.value, dict)
    return decoded.value


def _refuse_minus_zero(text: str) -> None:
    """Refuse `-0`, which Python reads as the integer 0 and others as a float."""
    if match := first_outside_strings(text, _MINUS_ZERO):
        raise JsonError(
            DefectKind.BAD_ENTRY,
            "-0 stands in the header, which readers take for a float",
            "write 0",
            match.start(),
        )


def _header_defect(error: JsonError, data: bytes, file: str) -> Defect:
    """Report a JSON error by its byte in the file: a header is one long line."""
    text = data.decode("utf-8", "replace")
    begin = LENGTH_BYTES + len(text[: error.offset].encode())
    kind = error.kind
    if isinstance(error, LoneSurrogateError):
        kind = DefectKind.BAD_ENTRY
    elif kind is DefectKind.UNREADABLE_JSON:
        kind = DefectKind.BAD_HEADER
    tensor = None
    if error.pointer is not None:
        first = error.pointer.split("/")[1]
        name = first.replace("~1", "/").replace("~0", "~")
        tensor = name if name != METADATA else None
    return Defect(
        kind,
        Problem(
            f"{error.message}, at byte {begin:,}",
            (Location(file, error.pointer, tensor, (begin, begin + 1)),),
            hint=error.hint if error.byte is None else _DAMAGED,
        ),
    )
