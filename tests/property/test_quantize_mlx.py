"""Quantizing against mlx itself, on groups that are hard to get right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmanifest.backends.reference import dequantize_affine
from qmanifest.packings import u32_lsb
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from collections.abc import Callable

mx = pytest.importorskip("mlx.core")

BITS = (1, 2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)
DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}
Values = npt.NDArray[np.float32]
_THOUSAND = np.float32(1000)


def to_mlx(stored: Stored) -> Any:  # noqa: ANN401 - mlx has no types
    array = mx.array(np.ascontiguousarray(stored.array))
    return array.view(mx.bfloat16) if stored.dtype == "BF16" else array


def assert_same(found: Stored, peer: Any, what: str) -> None:  # noqa: ANN401 - likewise
    """Compare bit for bit, except that one NaN is as good as another."""
    if found.dtype == "BF16":
        peer = peer.view(mx.uint16)
    expected = np.array(peer)
    assert found.array.dtype == expected.dtype
    as_bits = f"<u{expected.itemsize}"
    differ = found.array.view(as_bits) != expected.view(as_bits)
    if found.array.dtype.kind == "f":
        differ &= ~(np.isnan(found.array) & np.isnan(expected))
    assert not differ.any(), f"{what}: {differ.sum()} of {differ.size} differ"


def assert_same_as_mlx(values: Values, bits: int, group_size: int, dtype: str) -> None:
    """Quantize and rebuild here and in mlx, and compare all five tensors."""
    source = from_float32(values, dtype)
    found = quantize_affine(source, bits, group_size)
    peer = mx.quantize(to_mlx(source), group_size=group_size, bits=bits)
    words = Stored("U32", u32_lsb.pack(found.codes, bits))
    assert_same(words, peer[0], "words")
    assert_same(found.scales, peer[1], "scales")
    assert_same(found.biases, peer[2], "biases")
    rebuilt = dequantize_affine(found.codes, found.scales, found.biases, group_size)
    again = mx.dequantize(*peer, group_size=group_size, bits=bits)
    if dtype == "BF16":
        assert np.array_equal(np.array(again.view(mx.uint16)), rebuilt.array), "rebuilt"
    else:
        assert_same(rebuilt, again, "rebuilt")


def _normal(rng: np.random.Generator) -> Values:
    return rng.normal(size=(16, 128)).astype(np.float32)


def _subnormals(rng: np.random.Generator) -> Values:
    return (rng.integers(-40, 41, (4, 128)) * 1e-45).astype(np.float32)


def _near_the_least_scale(rng: np.random.Generator) -> Values:
    return (rng.integers(-40, 41, (4, 128)) * 3e-9).astype(np.float32)


def _ties(rng: np.random.Generator) -> Values:
    return rng.integers(-15, 16, (8, 128)).astype(np.float32) / np.float32(2)


def _signed_zeros(rng: np.random.Generator) -> Values:
    return rng.choice(
        np.array([0.0, -0.0, 1.0], np.float32), (16, 128), p=[0.49, 0.49, 0.02]
    )


def _outlier(rng: np.random.Generator) -> Values:
    values = rng.normal(size=(4, 128)).astype(np.float32) / np.float32(1000)
    values[1, 7], values[2, 100] = 1000, -1000
    return values


TRICKY: dict[str, Callable[[np.random.Generator], Values]] = {
    "zero": lambda _: np.zeros((2, 128), np.float32),
    "negative zero": lambda _: -np.zeros((2, 128), np.float32),
    "constant": lambda _: np.full((2, 128), 3.3, np.float32),
    "negative constant": lambda _: np.full((2, 128), -2.1, np.float32),
    "negative only": lambda rng: -rng.random((4, 128), np.float32) - 1,
    "positive only": lambda rng: rng.random((4, 128), np.float32) + 1,
    "narrow, far from zero": lambda rng: _normal(rng) / np.float32(500) + _THOUSAND,
    "outlier": _outlier,
    "subnormals": _subnormals,
    "near the least scale": _near_the_least_scale,
    "ties": _ties,
    "signed zeros": _signed_zeros,
    "normal": _normal,
    "large": lambda rng: _normal(rng) * _THOUSAND,
}


@pytest.mark.parametrize("make", TRICKY.values(), ids=TRICKY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tricky_groups(
    dtype: str, make: Callable[[np.random.Generator], Values]
) -> None:
    values = make(np.random.default_rng(7))
    for bits in BITS:
        for group_size in GROUPS:
            assert_same_as_mlx(values, bits, group_size, dtype)


@pytest.mark.parametrize("bits", BITS[1:])
def test_products_that_overflow_float16(bits: int) -> None:
    values = np.random.default_rng(9).uniform(-65504, 65504, (8, 128))
    assert_same_as_mlx(values.astype(np.float32), bits, 64, "F16")


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
@pytest.mark.parametrize("bits", BITS)
def test_almost_the_whole_range_of_float32(bits: int, dtype: str) -> None:
    values = np.random.default_rng(8).uniform(-1.6e38, 1.6e38, (8, 128))
    assert_same_as_mlx(values.astype(np.float32), bits, 64, dtype)


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
@pytest.mark.parametrize("bits", BITS)
def test_equal_weights_too_large_for_the_least_scale(bits: int, dtype: str) -> None:
    values = np.repeat(np.array([[3.5e31, -3.5e31, 3.4e31, 3e38]], np.float32), 32)
    assert_same_as_mlx(values[None], bits, 32, dtype)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_finite_weight(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(list(DTYPES)))
    bits = data.draw(st.sampled_from(BITS))
    limit = 2.0**14 if dtype == "F16" else 2.0**126
    some = st.floats(-limit, limit, width=32)
    fill = data.draw(st.sampled_from([st.just(0.0), some]))
    shape = (data.draw(st.integers(1, 3)), 128)
    values = data.draw(hnp.arrays(np.float32, shape, elements=some, fill=fill))
    assert_same_as_mlx(values, bits, data.draw(st.sampled_from(GROUPS)), dtype)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-30, 12))
def test_random_weights_at_any_magnitude(seed: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=(16, 128)) * 2.0**power).astype(np.float32)
    bits, group_size = rng.choice(BITS), rng.choice(GROUPS)
    dtype = str(rng.choice(list(DTYPES)))
    assert_same_as_mlx(values, int(bits), int(group_size), dtype)
