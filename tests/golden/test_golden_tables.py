"""Number tables that formats share, against files of gguf and bitsandbytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.golden import DATA, golden

from qmanifest.elements import ELEMENTS

Floats = npt.NDArray[np.float32]


def values(element: str, codes: npt.NDArray[np.integer[Any]]) -> Floats:
    return np.take(np.array(ELEMENTS[element].values, np.float32), codes)


@pytest.fixture(scope="module")
def gguf() -> dict[str, npt.NDArray[Any]]:
    with np.load(DATA / "gguf_blocks.npz") as file:
        return {name: file[name] for name in file.files}


def half(octets: npt.NDArray[np.uint8]) -> Floats:
    """Read a column of F16."""
    return np.ascontiguousarray(octets).view("<f2").astype(np.float32)


def halves(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Take nibbles as gguf has them: those of low nibbles first."""
    return np.concatenate([octets & 15, octets >> 4], axis=1)


def test_gguf_has_int8(gguf: dict[str, npt.NDArray[Any]]) -> None:
    blocks = gguf["Q8_0.raw"].reshape(-1, 34)
    made = values("i8", blocks[:, 2:]) * half(blocks[:, :2])
    np.testing.assert_array_equal(made.reshape(4, 256), gguf["Q8_0.dequant"])


def test_gguf_has_offset_nibbles(gguf: dict[str, npt.NDArray[Any]]) -> None:
    blocks = gguf["Q4_0.raw"].reshape(-1, 18)
    # Offset binary is two's complement with the sign bit turned over.
    codes = (halves(blocks[:, 2:]) ^ 8) << 4
    made = values("i8", codes) / 16 * half(blocks[:, :2])
    np.testing.assert_array_equal(made.reshape(4, 256), gguf["Q4_0.dequant"])


def test_gguf_has_e2m1_and_e8m0(gguf: dict[str, npt.NDArray[Any]]) -> None:
    blocks = gguf["MXFP4.raw"].reshape(-1, 17)
    made = values("e2m1", halves(blocks[:, 1:])) * values("e8m0", blocks[:, :1])
    np.testing.assert_array_equal(made.reshape(4, 256), gguf["MXFP4.dequant"])


@pytest.mark.parametrize("table", ["nf4", "fp4"])
def test_tables_of_bitsandbytes(table: str) -> None:
    stored = golden(f"bnb_{table}_float32")["weight.quant_map"].array
    ours = np.array(ELEMENTS[table].values, np.float32)
    np.testing.assert_array_equal(ours.view("<u4"), stored.view("<u4"))


@pytest.mark.parametrize("table", ["nf4", "fp4"])
def test_nested_map_of_bitsandbytes(table: str) -> None:
    stored = golden(f"bnb_{table}_double_float32")["weight.nested_quant_map"].array
    expected = np.load(DATA / "bnb_dynamic_map_signed_f32.npy")
    np.testing.assert_array_equal(stored, expected)
