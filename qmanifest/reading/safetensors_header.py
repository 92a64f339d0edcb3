"""Read the header of a safetensors file: its tensors, or why there are none to trust.

Stricter than the safetensors library: also refused are duplicate keys, white space
before the header, and dimensions that overflow beside a zero. Tensor data is not read.

Source: https://github.com/huggingface/safetensors, "Format" in its README.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from qmanifest.findings import (
    Defect,
    DefectKind,
    JsonValue,
    Location,
    Problem,
    json_pointer,
)
from qmanifest.reading.collector import collector_paused
from qmanifest.reading.files import FileProblem, open_regular, read_at
from qmanifest.reading.foreign import SNIFFED
from qmanifest.reading.header_entries import read_entries
from qmanifest.reading.header_frame import LENGTH_BYTES, read_frame
from qmanifest.reading.header_json import METADATA, decode_header
from qmanifest.reading.header_layout import layout_defects, trailing, truncated
from qmanifest.reading.header_plain import read_plain
from qmanifest.reading.wording import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from qmanifest.tensors import TensorInfo


class Header(msgspec.Struct, frozen=True):
    """One safetensors file as its header describes it, and what is wrong with it."""

    file: str
    """Path relative to the checkpoint."""
    size: int
    """Bytes of the whole file; 0 where it cannot be opened."""
    header_bytes: int = 0
    """Bytes before the tensor data: the header length and the JSON."""
    tensors: tuple[TensorInfo, ...] = ()
    """In the order of the header; byte ranges count from the start of the file."""
    metadata: Mapping[str, str] | None = None
    defects: tuple[Defect, ...] = ()
    readable: bool = False
    """Whether `tensors` surely has every tensor that was meant to be in the file."""


def read_header(path: Path, file: str) -> Header:
    """Read the header of one file; whatever is wrong with it becomes a defect.

    Args:
        path: where the file is.
        file: what to call it: its path relative to the checkpoint.

    """
    header = Header(file, 0)
    try:
        with open_regular(path) as (descriptor, size):
            header = Header(file, size)
            data = read_frame(descriptor, size)
            with collector_paused():
                header, covers = _read_members(data, header)
                if covers or not header.readable:
                    return header
                return _check_data(descriptor, header)
    except FileProblem as problem:
        return replace(header, defects=(problem.defect(file),), readable=False)


def _read_members(data: bytes, header: Header) -> tuple[Header, bool]:
    """Read the tensors and the metadata out of the header's JSON.

    Returns:
        The header, and whether its tensors surely cover the file's data.

    """
    file, size = header.file, header.size
    header_bytes = LENGTH_BYTES + len(data)
    plain = read_plain(data, file, header_bytes)
    if plain is not None:
        tensors, metadata = plain.tensors, plain.metadata
        header = Header(file, size, header_bytes, tensors, metadata, (), readable=True)
        return header, plain.end == size
    decoded = decode_header(data, file)
    if isinstance(decoded, Defect):
        return replace(header, header_bytes=header_bytes, defects=(decoded,)), False
    metadata, defects = _read_metadata(decoded.pop(METADATA, None), file)
    entries = read_entries(decoded, file, header_bytes)
    header = Header(
        file,
        size,
        header_bytes,
        entries.tensors,
        metadata,
        (*defects, *entries.defects),
        entries.whole,
    )
    return header, False


def _read_metadata(
    value: JsonValue, file: str
) -> tuple[dict[str, str] | None, tuple[Defect, ...]]:
    """Read the metadata: a map of strings. MLX writes null when it has none."""
    if value is None:
        return None, ()
    if not isinstance(value, dict):
        return None, (_bad_metadata(value, "not an object", file),)
    strings = {key: text for key, text in value.items() if isinstance(text, str)}
    wrong = next((key for key in value if key not in strings), None)
    if wrong is None:
        return strings, ()
    return strings, (_bad_metadata(value[wrong], "not a string", file, wrong),)


def _bad_metadata(value: JsonValue, what: str, file: str, *key: str) -> Defect:
    pointer = json_pointer(METADATA, *key)
    return Defect(
        DefectKind.BAD_HEADER,
        Problem(
            f"{pointer[1:]} is {shown(value)}, {what}",
            (Location(file=file, pointer=pointer),),
            hint="store every value of __metadata__ as a string",
        ),
    )


def _check_data(descriptor: int, header: Header) -> Header:
    """Compare the byte ranges with one another and with the size of the file."""
    file, size, tensors = header.file, header.size, header.tensors
    found = list(layout_defects(tensors, file, header.header_bytes))
    expected = max((tensor.end for tensor in tensors), default=header.header_bytes)
    if expected > size:
        found.append(truncated(tensors, file, size, expected))
    elif expected < size:
        tail = read_at(descriptor, expected, min(size - expected, SNIFFED))
        found.append(trailing(tail, file, size, expected))
    return replace(header, defects=(*header.defects, *found))
