"""Dtypes: their widths, and that numpy, torch and safetensors agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from qmanifest.dtypes import DTYPES, FLOAT, FLOAT16, Dtype, elements, nbytes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_numpy_agrees(dtype: Dtype) -> None:
    if dtype.numpy is None:
        return
    found = np.dtype(dtype.numpy)
    assert found.itemsize * 8 == dtype.bits
    assert found.byteorder in "|=<"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_torch_agrees(dtype: Dtype) -> None:
    torch = pytest.importorskip("torch")
    if dtype.torch is not None:
        assert getattr(torch, dtype.torch).itemsize * 8 == dtype.bits


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_the_code_names_the_width(dtype: Dtype) -> None:
    digits = "".join(c if c.isdigit() else " " for c in dtype.code).split()
    assert dtype.bits == (int(digits[0]) if digits else 8)


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("F16", (), 2),
        ("F16", (0, 9), 0),
        ("F32", (3, 5), 60),
        ("F4", (3,), 2),
        ("F4", (2, 2), 2),
        ("F6_E2M3", (4,), 3),
        ("F6_E3M2", (5,), 4),
        ("C64", (2,), 16),
        ("U8", (2**40, 2**40), 2**80),
    ],
)
def test_nbytes(dtype: str, shape: Shape, size: int) -> None:
    assert nbytes(dtype, shape) == size


def test_elements() -> None:
    assert elements(()) == 1
    assert elements((2, 3, 4)) == 24
    assert elements((2, 0)) == 0


def test_floats() -> None:
    assert FLOAT16 == ("F16", "BF16")
    assert {DTYPES[each].bits for each in FLOAT16} == {16}
    assert set(FLOAT16) < set(FLOAT)
