"""What headers say of tensors that are stored in several parts.

torchao writes into the metadata of every shard which tensors there are, `tensor_names`,
and for each one of which class it is, and the names of its fields. Loaders build the
tensors from that, and from the config no more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.reading.safetensors_header import Header

NAMES: Final = "tensor_names"
"""The metadata's list of the tensors that it describes."""
CLASSES: Final[dict[str, tuple[str, ...]]] = {
    "Int8Tensor": ("I8",),
    "IntxUnpackedToInt8Tensor": ("I8",),
    "Float8Tensor": ("F8_E4M3", "F8_E5M2"),
    "MXTensor": ("F8_E4M3", "F8_E5M2", "U8"),
    "NVFP4Tensor": ("U8",),
    "Int4Tensor": ("I8", "U8"),
    "Int4PlainInt32Tensor": ("I32",),
    "Int4TilePackedTo4dTensor": ("I32",),
}
"""The classes that loaders build, and the dtypes of the field with the codes.

Source: https://github.com/pytorch/ao, `prototype/safetensors/safetensors_utils.py`.
"""
MAX_TEXT: Final = 1 << 16
"""Characters of one description; writers need a few hundred."""


@dataclass(frozen=True, slots=True)
class Description:
    """One tensor as a header describes it."""

    file: str
    name: str
    """In the model, `X.weight`."""
    kind: str | None
    """Name of its class; None where the description cannot be read."""
    parts: tuple[str, ...]
    """Names of the stored tensors that it is made of."""


def describes(header: Header) -> bool:
    """Whether a header says which tensors there are."""
    return NAMES in (header.metadata or {})


def descriptions(header: Header) -> Iterator[Description]:
    """Read every description of a header."""
    metadata = header.metadata or {}
    names = _parsed(metadata.get(NAMES, "[]"), len(metadata) * MAX_TEXT)
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str):
            said = _parsed(metadata.get(name, ""), MAX_TEXT)
            yield _description(header.file, name, said)


def _description(file: str, name: str, said: object) -> Description:
    """Make a description of what was said of a tensor."""
    fields: object = None
    kind: object = None
    if isinstance(said, dict):
        kind, fields = said.get("_type"), said.get("_tensor_data_names")
    if not isinstance(kind, str):
        return Description(file, name, None, ())
    if not isinstance(fields, list) or not all(isinstance(x, str) for x in fields):
        return Description(file, name, kind, (name,))
    module, _, parameter = name.rpartition(".")
    return Description(
        file, name, kind, tuple(f"{module}._{parameter}_{field}" for field in fields)
    )


def _parsed(text: str, most: int) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON; None where it is none, or too long."""
    if len(text) > most:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
