"""Read a plain header at full speed: one without escapes, and spaces in its entries.

The writers of safetensors and MLX write such headers. msgspec finds names and entries,
and `header_columns` takes the entries apart. Any other header, sound or not, is left to
`header_json`, which can also say what is wrong.

msgspec keeps the last of two equal keys without telling. But every string of the text
has two quotes, so where those that were kept have as many as the text, none was lost.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from qmanifest.reading import limits
from qmanifest.reading.header_columns import QUOTES, Columns, take_apart
from qmanifest.reading.header_json import METADATA
from qmanifest.reading.tensor_names import long_names
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_METADATA: Final = msgspec.json.Decoder(dict[str, str] | None)
_NULL: Final = msgspec.Raw(b"null")


class Plain(NamedTuple):
    """What a plain header says."""

    tensors: tuple[TensorInfo, ...]
    metadata: dict[str, str] | None
    end: int | None
    """Where the last tensor ends, if every one begins where that before it ends."""


def read_plain(data: bytes, file: str, data_start: int) -> Plain | None:
    """Read a header in which nothing is wrong or out of the ordinary, or else nothing.

    Args:
        data: the JSON of the header, with its padding.
        file: the shard's path relative to the checkpoint.
        data_start: offset of the tensor data in the file; entries count from there.

    """
    # A value takes at least a digit and a comma, or two brackets.
    if len(data) > 2 * limits.MAX_VALUES or b"\\" in data:
        return None
    try:
        members = _MEMBERS.decode(data)
        has_metadata = METADATA in members
        metadata = _METADATA.decode(members.pop(METADATA, _NULL))
        names = tuple(members)
        strings = len(names) + has_metadata + 2 * len(metadata or ())
        if data.count(b'"') != 2 * strings + QUOTES * len(names):
            return None
        if not _are_names(names, file):
            return None
        columns = take_apart(members.values()) if names else Columns([], [], [], [])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return _plain(names, columns, metadata, file, data_start)


def _are_names(names: Sequence[str], file: str) -> bool:
    """Whether the names are such as tensors should have; JSON escapes are not asked."""
    if len(names) > limits.MAX_TENSORS or "" in names or long_names(names, file):
        return False
    text = "".join(names)
    # Of ASCII, JSON leaves only DEL that cannot be seen.
    return "\x7f" not in text if text.isascii() else text.isprintable()


def _plain(
    names: Sequence[str],
    columns: Columns,
    metadata: dict[str, str] | None,
    file: str,
    data_start: int,
) -> Plain:
    """Make the tensors, with byte ranges counted from the start of the file."""
    ends = list(map(data_start.__add__, columns.ends))
    chained = columns.begins == [0, *columns.ends][: len(names)]
    if chained:
        begins = [data_start, *ends][: len(names)]
    else:
        begins = list(map(data_start.__add__, columns.begins))
    dtypes, shapes = columns.dtypes, columns.shapes
    rows = map(TensorInfo, names, dtypes, shapes, begins, ends, repeat(file))
    end = (ends or [data_start])[-1] if chained else None
    return Plain(tuple(rows), metadata, end)
