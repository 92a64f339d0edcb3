"""The start of a safetensors file: what it will hold, known before any data exists.

Source: https://github.com/huggingface/safetensors, "Format".
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import DTYPES, nbytes
from qmanifest.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from qmanifest.tensors import Shape

ALIGNMENT: Final = 8
"""Headers are padded so that tensor data starts at a multiple of this."""
HEADER_LIMIT: Final = 100_000_000
"""Longest header that the safetensors library reads, in bytes."""


@dataclass(frozen=True, slots=True)
class OutputTensor:
    """A tensor to write: everything but its data."""

    name: str
    dtype: str
    """A code of `qmanifest.dtypes.DTYPES`."""
    shape: Shape

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor's data."""
        return nbytes(self.dtype, self.shape)


def planned_header_bytes(
    specs: Iterable[OutputTensor], metadata: Mapping[str, str]
) -> int:
    """Count the bytes before the data of a shard of `specs`, length field included."""
    return len(encode_header(specs, metadata))


def encode_header(specs: Iterable[OutputTensor], metadata: Mapping[str, str]) -> bytes:
    """Build all bytes before the data: length, compact JSON, padding to 8 bytes.

    Raises:
        WriteError: the header is longer than readers accept, or a metadata string
            is not Unicode text.

    """
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for spec in specs:
        end = offset + spec.nbytes
        header[spec.name] = {
            "dtype": spec.dtype,
            "shape": list(spec.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise WriteError(
            "a name or a metadata string has half of a surrogate pair, which UTF-8 "
            "cannot say. Remove it."
        ) from error
    text += b" " * (-len(text) % ALIGNMENT)
    if len(text) > HEADER_LIMIT:
        raise WriteError(
            f"a header of {len(text):,} bytes is longer than the {HEADER_LIMIT:,} "
            "that readers accept. Lower the shard size."
        )
    return struct.pack("<Q", len(text)) + text


def check_tensors(specs: Sequence[OutputTensor]) -> None:
    """Refuse what a header could not say."""
    seen: set[str] = set()
    for spec in specs:
        if spec.name == "__metadata__" or spec.name in seen:
            raise WriteError(f"tensor name {spec.name!r} is taken. Rename the tensor.")
        seen.add(spec.name)
        if spec.dtype not in DTYPES:
            raise WriteError(f"tensor {spec.name!r} has unknown dtype {spec.dtype!r}.")
        elements = 1
        for side in spec.shape:
            elements *= side
        if min(spec.shape, default=0) < 0 or elements * DTYPES[spec.dtype].bits % 8:
            raise WriteError(
                f"tensor {spec.name!r} of {spec.dtype} {list(spec.shape)} is not a "
                "whole number of bytes. Pad its last dimension."
            )
