"""What bitsandbytes writes beside a 4-bit weight: a small JSON document, as bytes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from qmanifest.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Codebook
    from qmanifest.tensors import Shape

MAX_STATE: Final = 4096
"""Bytes of the document; the library writes fewer than 200."""
_LARGEST: Final = math.ldexp(2 - 2**-23, 127)
"""The largest float32."""
DTYPES: Final = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


@dataclass(frozen=True, slots=True)
class QuantState:
    """What the document says that no other tensor does."""

    dtype: str
    """What the rebuilt weight is rounded to."""
    offset: float
    """What is added to every absmax that was itself quantized."""


def read_quant_state(stored: Stored, scheme: Codebook, shape: Shape) -> QuantState:
    """Read the document and compare it with what else is known.

    Raises:
        BackendError: it is no such document, or says something else of the weight.

    """
    said = _document(stored)
    known: dict[str, object] = {
        "quant_type": scheme.table,
        "blocksize": scheme.block_size,
        "shape": list(shape),
    }
    if scheme.nested:
        known |= {"nested_blocksize": scheme.nested, "nested_dtype": "float32"}
    for key, value in known.items():
        if json.dumps(said.get(key)) != json.dumps(value):  # 1, 1.0 and true differ
            raise BackendError(f"quant_state: {key} is not {value!r}")
    dtype, offset = _dtype(said), said.get("nested_offset", 0.0)
    if bool(scheme.nested) != ("nested_offset" in said):
        raise BackendError("quant_state: nested_offset goes with a nested absmax")
    if type(offset) not in (int, float) or not -_LARGEST <= offset <= _LARGEST:
        raise BackendError("quant_state: nested_offset is no finite number")
    return QuantState(dtype, offset)


def shape_of_state(stored: Stored) -> Shape:
    """Read the logical shape that the document says; empty where it says none.

    Raises:
        BackendError: it is no such document.

    """
    shape = _document(stored).get("shape")
    if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
        return ()
    return tuple(shape)


def dtype_of_state(stored: Stored) -> str:
    """Read what the rebuilt weight is rounded to.

    Raises:
        BackendError: it is no such document, or says no such dtype.

    """
    return _dtype(_document(stored))


def _dtype(said: Mapping[str, Any]) -> str:
    dtype = said.get("dtype")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise BackendError(f"quant_state: dtype is none of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def _document(stored: Stored) -> dict[str, Any]:
    """Parse the bytes as a JSON object."""
    if stored.array.ndim != 1 or stored.array.size > MAX_STATE:
        raise BackendError(f"quant_state is a row of at most {MAX_STATE} bytes")
    try:
        said = json.loads(stored.array.tobytes().decode(), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise BackendError("quant_state is no JSON document in UTF-8") from error
    if not isinstance(said, dict):
        raise BackendError("quant_state is no JSON object")
    return said


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of pairs, each key once."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made
