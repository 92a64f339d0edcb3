"""Golden vectors: files of numbers that other implementations made."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import deserialize, safe_open

from qmanifest.packings.arrays import Stored, to_array

DATA: Final = Path(__file__).parent.parent / "golden" / "data"


@cache
def golden(name: str) -> dict[str, Stored]:
    """Read a file of vectors."""
    data = (DATA / f"{name}.safetensors").read_bytes()
    return {
        key: Stored(
            tensor["dtype"],
            to_array(tensor["dtype"], tuple(tensor["shape"]), bytes(tensor["data"])),
        )
        for key, tensor in sorted(
            deserialize(data),  # type: ignore[no-untyped-call] # has no types
            key=lambda pair: pair[0],  # of two workers, both see the same order
        )
    }


def metadata(name: str) -> dict[str, str]:
    """Read what a file says of its origin."""
    with safe_open(DATA / f"{name}.safetensors", "np") as file:
        return dict(file.metadata() or {})


def assert_same(found: Stored, expected: Stored) -> None:
    """Compare two tensors bit for bit."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    as_bits = f"<u{expected.array.itemsize}"
    np.testing.assert_array_equal(
        np.ascontiguousarray(found.array).view(as_bits),
        np.ascontiguousarray(expected.array).view(as_bits),
    )
