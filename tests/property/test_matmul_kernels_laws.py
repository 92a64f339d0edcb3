"""Laws of the compiled products: near float64, and their gradients the dense ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")
if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")

from qmanifest.backends import reference
from qmanifest.backends.pytorch import (
    dequantize,
    quantized_matmul,
    weight_from_parts,
)
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Float32, Stored, from_float32
from qmanifest.schemes import Affine

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
ROUNDINGS = {"F32": 2e-6, "F16": 2.0**-11 + 2e-6, "BF16": 2.0**-8 + 2e-6}
"""Largest error over largest result: of summing, and of rounding to the dtype of x."""


@st.composite
def weights(draw: st.DrawFn) -> tuple[Affine, tuple[int, int], dict[str, Stored]]:
    """Draw a weight of any width of code, with up to 21 rows of up to 5 groups."""
    bits, group = (
        draw(st.sampled_from([2, 3, 4, 5, 6, 8])),
        draw(st.sampled_from([32, 64, 128])),
    )
    scale = draw(st.sampled_from(sorted(DTYPES)))
    shape = (draw(st.integers(1, 21)), group * draw(st.integers(1, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(0, 1 << bits, shape, np.uint8)
    magnitude = 2.0 ** draw(st.integers(-8, 4))
    parts = {"codes": Stored("U32", PACKINGS["u32-lsb"].pack(codes, bits))}
    for role in ("scales", "biases"):
        values = rng.normal(size=(shape[0], shape[1] // group)) * magnitude
        parts[role] = from_float32(np.asarray(values, np.float32), scale)
    return Affine(bits, group, (scale,), "u32-lsb"), shape, parts


@settings(deadline=None)
@given(
    case=weights(), inputs=st.integers(1, 40), x_dtype=st.sampled_from(sorted(DTYPES))
)
def test_product_is_near_the_float64_product(
    case: tuple[Affine, tuple[int, int], dict[str, Stored]], inputs: int, x_dtype: str
) -> None:
    scheme, shape, parts = case
    x = torch.randn(inputs, shape[1], generator=torch.Generator().manual_seed(inputs))
    x = (x / 64).to(DTYPES[x_dtype])
    made = quantized_matmul(x, weight_from_parts(scheme, shape, parts))
    dense: Float32 = reference.dequantize(scheme, parts, shape)
    exact = reference.matmul(x.double().numpy(), dense)
    assert made.dtype == x.dtype
    error = np.abs(made.double().numpy() - exact).max()
    assert error <= ROUNDINGS[x_dtype] * np.abs(exact).max() + 2.0**-25


@settings(deadline=None)
@given(case=weights())
def test_rebuilt_weight_is_the_reference(
    case: tuple[Affine, tuple[int, int], dict[str, Stored]],
) -> None:
    scheme, shape, parts = case
    weight = weight_from_parts(scheme, shape, parts)
    expected = reference.dequantize(scheme, parts, shape)
    np.testing.assert_array_equal(dequantize(weight).float().numpy(), expected)
    np.testing.assert_array_equal(dequantize(weight, torch.float32).numpy(), expected)


@settings(deadline=None)
@given(case=weights(), inputs=st.integers(1, 10))
def test_gradient_is_near_that_of_the_dense_weight(
    case: tuple[Affine, tuple[int, int], dict[str, Stored]], inputs: int
) -> None:
    scheme, shape, parts = case
    weight = weight_from_parts(scheme, shape, parts)
    x = torch.zeros(inputs, shape[1], requires_grad=True)
    towards = torch.randn(inputs, shape[0])
    (made,) = torch.autograd.grad(quantized_matmul(x, weight), x, towards)
    exact = towards.double() @ dequantize(weight).double()
    assert (made.double() - exact).abs().max() <= 2e-6 * exact.abs().max()
