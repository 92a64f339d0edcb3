"""Names of shard files: which are safe to open, and which belong together."""

from __future__ import annotations

import re
from typing import Final

from qmanifest.reading import limits

EXTENSION: Final = ".safetensors"
INDEX_EXTENSION: Final = ".safetensors.index.json"

_NUMBERED: Final = re.compile(r"(.+)-([0-9]{1,9})-of-([0-9]{1,9})")
_DRIVE_OR_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def split_name(file: str) -> tuple[str, tuple[int, int] | None]:
    """Split a shard's file name into its set's name and its number.

    >>> split_name("model-00002-of-00003.safetensors")
    ('model', (2, 3))
    >>> split_name("model.safetensors")
    ('model', None)
    """
    stem = file.removesuffix(EXTENSION)
    match = _NUMBERED.fullmatch(stem)
    if match is None:
        return stem, None
    return match[1], (int(match[2]), int(match[3]))


def unsafe_reason(name: str) -> str | None:
    """Say why a shard name from an index must not be opened; None where it may.

    Only plain relative paths to `.safetensors` files below the index are opened.
    """
    parts = name.split("/")
    reasons = (
        (not name, "is empty"),
        (not name.isprintable(), "has invisible characters"),
        ("\\" in name, "has a backslash"),
        (name.startswith("/"), "is an absolute path"),
        ("://" in name, "is a URL"),
        (_DRIVE_OR_SCHEME.match(name), "begins with a drive letter or a URL scheme"),
        (".." in parts, "leads out of the folder with '..'"),
        ("." in parts or "" in parts, "has an empty or '.' part"),
        (not name.endswith(EXTENSION), f"does not end in {EXTENSION}"),
        (len(name.encode()) > limits.MAX_NAME, f"is over {limits.MAX_NAME} bytes"),
    )
    return next((reason for applies, reason in reasons if applies), None)
