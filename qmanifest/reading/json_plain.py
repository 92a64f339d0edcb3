"""Decode a large JSON object at full speed: one whose entries are mostly alike.

A config of a hundred thousand entries has few different ones, and an index names few
shards. msgspec takes the outer two levels apart, and what lies deeper is decoded by
`json_decode`, each text once; equal entries become one and the same object.

msgspec keeps the last of two equal keys without telling. But every string of the text
has two quotes, so where the strings that were kept have as many quotes as the text, no
key was dropped. What is damaged or out of the ordinary is left to `json_decode`, which
can also say what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from qmanifest.reading import limits
from qmanifest.reading.json_decode import decode
from qmanifest.reading.json_error import JsonError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from qmanifest.findings import JsonValue

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STRINGS: Final = msgspec.json.Decoder(dict[str, str])
_FEW: Final = 1_000
_ALIKE: Final = 4
"""Values that are alike, on average, where looking for equal ones of many pays."""


def decode_plain(data: bytes, depth: int) -> dict[str, JsonValue] | None:
    """Decode an object in which nothing is wrong or out of the ordinary, or nothing.

    Args:
        data: the JSON text.
        depth: arrays and objects that may stand inside one another.

    """
    # A value takes at least a digit and a comma, or two brackets.
    if len(data) > 2 * limits.MAX_VALUES:
        return None
    # One byte is looked for much faster than two.
    if b"\\" in data and b"\\u" in data:
        return None
    try:
        outer = _MEMBERS.decode(data)
        parts = {key: _Part(raw) for key, raw in outer.items()}
        quotes = 2 * len(outer) + sum(part.quotes for part in parts.values())
        if quotes != _quotes(data):
            return None
        values = _values(parts.values(), depth)
    except (msgspec.MsgspecError, ValueError, RecursionError, JsonError):
        return None
    return {key: part.value(values) for key, part in parts.items()}


class _Part:
    """A member of the outer object: an object taken apart, or any other value."""

    def __init__(self, text: msgspec.Raw) -> None:
        self.strings: dict[str, JsonValue] | None = None
        """Members that are all strings."""
        self.names: Collection[str] | None = None
        """Keys of any other object."""
        self.texts: list[bytes] = []
        """Values to decode: that of each name, or else the only one."""
        if bytes(memoryview(text)[:1]) != b"{":
            self.texts = [bytes(text)]
            self.quotes = _quotes(self.texts[0])
            return
        try:
            strings = _STRINGS.decode(text)
            self.strings = cast("dict[str, JsonValue]", strings)
            self.quotes = 4 * len(strings)
        except msgspec.ValidationError:
            members = _MEMBERS.decode(text)
            self.names, self.texts = members.keys(), list(map(bytes, members.values()))
            self.quotes = 2 * len(members) + _quotes(b"".join(self.texts))

    def value(self, values: dict[bytes, JsonValue]) -> JsonValue:
        """Put the value together from those of its texts."""
        if self.strings is not None:
            return self.strings
        found = map(values.__getitem__, self.texts)
        if self.names is not None:
            return dict(zip(self.names, found, strict=True))
        return next(found)


def _quotes(text: bytes) -> int:
    """Count the quotes that begin or end a string of valid JSON."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')


def _values(parts: Iterable[_Part], depth: int) -> dict[bytes, JsonValue]:
    """Decode every text, each once.

    Raises:
        JsonError: one of them is refused.
        ValueError: so few are alike that this takes longer than to decode the whole.

    """
    texts = {}
    total = 0
    for part in parts:
        texts.update(dict.fromkeys(part.texts))
        total += len(part.texts)
    if _ALIKE * len(texts) > total > _FEW:
        raise ValueError("most values differ")
    decoded = decode(b"[" + b",".join(texts) + b"]", depth - 1).value
    assert isinstance(decoded, list)
    return dict(zip(texts, decoded, strict=True))
