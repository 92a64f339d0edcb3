"""Read a plain header at full speed: one that is just what its own entries encode to.

msgspec makes the entries without a detour over dicts. But it keeps the last of two
equal keys, takes `4.0` for `4` and is free with much else, so what it makes counts only
where encoding it gives the text back, byte for byte: then nothing was dropped, doubled
or bent. The writers of safetensors and MLX write such headers. Any other, sound or not,
is left to `header_json`, which can also say what is wrong.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec

from qmanifest.dtypes import DTYPES
from qmanifest.reading import limits
from qmanifest.reading.tensor_names import long_names
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

_BITS: Final = {code: dtype.bits for code, dtype in DTYPES.items()}
_OVERFLOW: Final = 1 << 63
_FIRST: Final = b'{"__metadata__":'
"""How a header with metadata begins, or it is not plain."""

if TYPE_CHECKING:
    _Dtype: TypeAlias = str
else:
    _Dtype = Literal[tuple(DTYPES)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=_OVERFLOW - 1)]


class _Entry(msgspec.Struct, gc=False):
    """An entry with its fields in the order of the safetensors library."""

    dtype: _Dtype
    shape: tuple[_Count, ...]
    data_offsets: tuple[_Count, _Count]


class _SortedEntry(msgspec.Struct, gc=False):
    """An entry with its fields in the order of MLX."""

    data_offsets: tuple[_Count, _Count]
    dtype: _Dtype
    shape: tuple[_Count, ...]


_ENTRIES: Final = msgspec.json.Decoder(dict[str, _Entry])
_SORTED: Final = msgspec.json.Decoder(dict[str, _SortedEntry])
_METADATA: Final = msgspec.json.Decoder(dict[str, str] | None)


class Plain(NamedTuple):
    """What a plain header says."""

    tensors: tuple[TensorInfo, ...]
    metadata: dict[str, str] | None


def read_plain(data: bytes, file: str, data_start: int) -> Plain | None:
    """Read a header in which nothing is wrong or out of the ordinary, or else nothing.

    Args:
        data: the JSON of the header, with its padding.
        file: the shard's path relative to the checkpoint.
        data_start: offset of the tensor data in the file; entries count from there.

    """
    if not _is_small(data):
        return None
    try:
        metadata, entries = _decode(data.rstrip(b" "))
    except (msgspec.MsgspecError, ValueError):  # the latter where it is not UTF-8
        return None
    tensors = _tensors(entries, file, data_start)
    if tensors is None or long_names(entries, file):
        return None
    return Plain(tensors, metadata)


def _is_small(data: bytes) -> bool:
    """Whether the text surely has no more values than may be read.

    A value takes at least a digit and a comma, or two brackets.
    """
    return len(data) <= 2 * limits.MAX_VALUES


def _decode(
    data: bytes,
) -> tuple[dict[str, str] | None, Mapping[str, _Entry | _SortedEntry]]:
    """Decode metadata and entries, and compare them with the text.

    Raises:
        ValueError: the text is not what they encode to.

    """
    metadata = None
    if data.startswith(_FIRST):
        start = len(_FIRST)
        null = data.startswith(b"null", start)
        end = start + 4 if null else data.index(b"}", start) + 1
        metadata = _METADATA.decode(data[start:end])
        if msgspec.json.encode(metadata) != data[start:end]:
            raise ValueError("metadata in another spelling")
        if data[end:] != b"}" and not data.startswith(b',"', end):
            raise ValueError("metadata that nothing sound follows")
        data = b"{" + data[end + data.startswith(b",", end) :]
    is_sorted = data.startswith(b'{"data_offsets"', data.find(b":{") + 1)
    entries = (_SORTED if is_sorted else _ENTRIES).decode(data)
    if msgspec.json.encode(entries) != data:
        raise ValueError("entries in another spelling")
    return metadata, entries


def _tensors(
    entries: Mapping[str, _Entry | _SortedEntry], file: str, data_start: int
) -> tuple[TensorInfo, ...] | None:
    """Check the size of every tensor; None where one is off, or has no elements."""
    if len(entries) > limits.MAX_TENSORS or "__metadata__" in entries:
        return None
    if not "".join(entries).isprintable() or "" in entries:
        return None
    tensors = []
    for name, entry in entries.items():
        begin, end = entry.data_offsets
        shape = entry.shape
        bits = prod(shape) * _BITS[entry.dtype]
        if bits != 8 * (end - begin) or not 0 < bits < _OVERFLOW:
            return None
        if len(shape) > limits.MAX_RANK:
            return None
        tensors.append(
            TensorInfo(
                name, entry.dtype, shape, begin + data_start, end + data_start, file
            )
        )
    return tuple(tensors)
