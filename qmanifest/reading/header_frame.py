"""The frame of a safetensors file: 8 bytes of header length, JSON, tensor data.

Source: https://github.com/huggingface/safetensors, "Format" in its README.
"""

from __future__ import annotations

from typing import Final, NoReturn

from qmanifest.findings import DefectKind
from qmanifest.reading import limits
from qmanifest.reading.files import FileProblem, read_at
from qmanifest.reading.foreign import SNIFFED, recognise
from qmanifest.reading.wording import character, count

LENGTH_BYTES: Final = 8
"""Bytes of the header length, an unsigned little-endian integer."""
_BOM: Final = b"\xef\xbb\xbf"


def read_frame(descriptor: int, size: int) -> bytes:
    """Read the JSON of a header, and nothing of the data behind it.

    Raises:
        FileProblem: not a safetensors file, cut in its header, or over the limit.

    """
    if size == 0:
        raise FileProblem(
            DefectKind.NOT_SAFETENSORS,
            "the file is empty",
            "download or write the file again",
        )
    start = read_at(descriptor, 0, min(size, SNIFFED))
    length = int.from_bytes(start[:LENGTH_BYTES], "little")
    opens = start[LENGTH_BYTES : LENGTH_BYTES + 1]
    plausible = opens == b"{" and length <= limits.MAX_HEADER
    if not plausible and (foreign := recognise(start)) is not None:
        _refuse(f"the file is not safetensors but {foreign[0]}", foreign[1])
    _check_length(length, size, opens)
    header = read_at(descriptor, LENGTH_BYTES, length)
    if len(header) < length:
        raise _cut(length, LENGTH_BYTES + len(header))
    if not header.startswith(b"{"):
        raise _bad_start(header)
    return header


def _check_length(length: int, size: int, opens: bytes) -> None:
    """Refuse a header length that cannot be one, or that the file does not hold."""
    if size < LENGTH_BYTES:
        _refuse(
            f"the file has {count(size, 'byte')}, fewer than the 8 of a header length",
            "download or write the file again",
        )
    if length == 0:
        _refuse("the header length is 0", "download or write the file again")
    cut = size < LENGTH_BYTES + length
    if length > limits.MAX_HEADER and not cut:
        raise FileProblem(
            DefectKind.OVER_LIMIT,
            f"the header has {count(length, 'byte')}; "
            f"at most {limits.MAX_HEADER:,} are read",
            "split the checkpoint into shards, or shorten the metadata",
            expected=limits.MAX_HEADER,
            actual=length,
        )
    if cut and length <= limits.MAX_HEADER and opens in (b"{", b""):
        raise _cut(length, size)
    if cut:
        _refuse(
            f"the first 8 bytes say that the header has {length:,} bytes, "
            f"and the file has {size:,}",
            "download or write the file again",
        )


def _refuse(message: str, hint: str) -> NoReturn:
    raise FileProblem(DefectKind.NOT_SAFETENSORS, message, hint)


def _cut(length: int, size: int) -> FileProblem:
    return FileProblem(
        DefectKind.TRUNCATED,
        f"the file ends in its header: {LENGTH_BYTES + length:,} bytes expected, "
        f"{size:,} found; all of its tensors are lost",
        "download or write the file again",
        expected=LENGTH_BYTES + length,
        actual=size,
    )


def _bad_start(header: bytes) -> FileProblem:
    """Say what stands where the header's `{` should."""
    if header.startswith(_BOM):
        found = "a byte order mark"
    elif header[:1].isascii():
        found = character(chr(header[0]))
    else:
        found = f"byte 0x{header[0]:02X}"
    return FileProblem(
        DefectKind.BAD_HEADER,
        f"the header begins with {found}, not with '{{'",
        "write the file again: its header must be one JSON object",
        expected="{",
        actual=found,
    )
