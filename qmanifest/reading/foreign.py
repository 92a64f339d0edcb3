"""Recognise what stands in a `.safetensors` file that is no safetensors file.

To teach it another format, add a row to `_MAGIC`.
"""

from __future__ import annotations

import re
from typing import Final

from qmanifest.reading.wording import quoted

SNIFFED: Final = 512
"""Bytes from the start of a file that `recognise` looks at."""

_CONVERT: Final = "convert it to safetensors; renaming it does not change what it is"
_DOWNLOAD: Final = "download the file again"

_MAGIC: Final = (
    (rb"PK(\x03\x04|\x05\x06)", "a ZIP archive, as torch.save writes", _CONVERT),
    (rb"\x80[\x02-\x05][^\0]", "a pickle", _CONVERT),
    (rb"GGUF", "a GGUF file", _CONVERT),
    (rb"\x93NUMPY", "a numpy array file", _CONVERT),
    (rb"\x89HDF\r\n", "an HDF5 file", _CONVERT),
    (rb"\x1f\x8b\x08", "gzip data", "unpack the file"),
    (rb"\xfd7zXZ\0", "xz data", "unpack the file"),
    (rb"\x28\xb5\x2f\xfd", "zstandard data", "unpack the file"),
    (rb"BZh[1-9]", "bzip2 data", "unpack the file"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack the file"),
    (rb"[\s\S]{257}ustar", "a tar archive", "unpack the file"),
    (
        rb"\s*<(?i:!doctype|html|head|\?xml)",
        "an HTML or XML page",
        "download the file again, logged in if the model needs it",
    ),
    (rb'\s*\{\s*"', "JSON text without the header length", _DOWNLOAD),
    (rb"\0{16}", "zeros, as an unfinished download leaves", _DOWNLOAD),
)
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/")
_POINTER_SIZE: Final = re.compile(rb"^size ([0-9]{1,20})\r?$", re.MULTILINE)
_TEXT: Final = re.compile(rb"[\t\n\r -~]{8,}\Z")


def recognise(start: bytes) -> tuple[str, str] | None:
    """Tell by its first bytes what a file or its tail is, and what to do about it."""
    if _POINTER.match(start):
        size = _POINTER_SIZE.search(start)
        of_what = f" to a file of {int(size[1]):,} bytes" if size else ""
        return f"a git-lfs pointer{of_what}", "run `git lfs pull` in its repository"
    for magic, name, hint in _MAGIC:
        if re.match(magic, start):
            return name, hint
    if _TEXT.match(start):
        line = start.decode("ascii").strip().split("\n", 1)[0][:60]
        return f"plain text that begins with {quoted(line)}", _DOWNLOAD
    return None
