"""Every set of kernels gives what the reference and mlx give, bit for bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmanifest.elements import ELEMENTS
from qmanifest.errors import PackingError
from qmanifest.kernels import careful
from qmanifest.kernels.reference import KERNELS as REFERENCE
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Stored, from_float32, storage_dtype
from qmanifest.schemes import Affine, Microscaling

if TYPE_CHECKING:
    from qmanifest.kernels.base import Kernels, PackedParts
    from qmanifest.packings.arrays import Float32
    from qmanifest.schemes import Scheme

compiled = pytest.importorskip("qmanifest.kernels.compiled", exc_type=ImportError)
SETS: dict[str, Kernels] = {
    "careful": careful.KERNELS,
    "compiled": compiled.KERNELS,
}
DTYPES = ("F32", "F16", "BF16")
BITS = (1, 2, 3, 4, 5, 6, 7, 8)
GROUPS = (32, 64, 128)
MICROSCALING: tuple[Microscaling, ...] = (
    Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
    Microscaling("e2m1", 16, "e4m3", "u8-nibbles", "amax"),
)


@pytest.fixture(params=list(SETS.values()), ids=list(SETS))
def kernels(request: pytest.FixtureRequest) -> Kernels:
    found: Kernels = request.param
    return found


def assert_same(found: Stored, expected: Stored, what: str) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    kind = f"<u{found.array.itemsize}"
    differ = found.array.view(kind) != expected.array.view(kind)
    assert not differ.any(), f"{what}: {differ.sum()} of {differ.size} differ"


def assert_quantizes(
    kernels: Kernels, weight: Stored, bits: int, group_size: int, scale: str | None
) -> PackedParts:
    found = kernels.quantize(weight, bits, group_size, scale)
    expected = REFERENCE.quantize(weight, bits, group_size, scale)
    assert_same(Stored("U32", found.words), Stored("U32", expected.words), "words")
    assert_same(found.scales, expected.scales, "scales")
    assert_same(found.biases, expected.biases, "biases")
    return found


def refusal(
    kernels: Kernels, weight: Stored, bits: int, group_size: int, scale: str | None
) -> str | None:
    """Give the words with which a weight is refused, if it is."""
    try:
        kernels.quantize(weight, bits, group_size, scale)
    except PackingError as error:
        return str(error)
    return None


def assert_rebuilds(
    kernels: Kernels, scheme: Scheme, parts: dict[str, Stored], shape: tuple[int, ...]
) -> None:
    for dtype in (None, *DTYPES):
        expected = REFERENCE.dequantize(scheme, parts, shape, dtype=dtype)
        out = np.ones(shape, storage_dtype(expected.dtype))
        found = kernels.dequantize(scheme, parts, shape, out, dtype)
        assert found.array is out
        assert_same(found, expected, f"{scheme} as {dtype}")


def tricky(rng: np.random.Generator) -> Float32:
    """Rows of 128 values that are hard to quantize, float32."""
    normal = rng.normal(size=(8, 128))
    ties = rng.integers(-15, 16, (4, 128)) / 2
    rows = [
        *(np.zeros((1, 128)), -np.zeros((1, 128)), np.full((2, 128), 3.3)),
        *(np.full((1, 128), -2.1), -rng.random((2, 128)) - 1, rng.random((2, 128)) + 1),
        *(normal, normal / 500 + 1000, normal * 1000, ties),
        *(rng.integers(-40, 41, (4, 128)) * 1e-45, normal * 1e-39, normal * 3e-5),
        *(
            rng.integers(-40, 41, (4, 128)) * 3e-9,
            rng.choice([0.0, -0.0, 1.0], (4, 128)),
        ),
        *(np.where(np.arange(128) == 77, 1000, normal / 1000), normal * 6e4 / 8),
    ]
    return np.concatenate(rows).astype(np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", BITS)
def test_tricky_groups(kernels: Kernels, bits: int, dtype: str) -> None:
    weight = from_float32(tricky(np.random.default_rng(bits)), dtype)
    for group_size in (*GROUPS, 16):
        made = assert_quantizes(kernels, weight, bits, group_size, None)
        parts = {
            "codes": Stored("U32", made.words),
            "scales": made.scales,
            "biases": made.biases,
        }
        scheme = Affine(bits, group_size, (dtype,), "u32-lsb")
        assert_rebuilds(kernels, scheme, parts, weight.shape)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(SETS)))
def test_any_bits_quantize_or_are_refused_alike(data: st.DataObject, name: str) -> None:
    """Arrays of any bit patterns: NaN, infinity, subnormals and overflow included."""
    dtype = data.draw(st.sampled_from(DTYPES))
    group_size = data.draw(st.sampled_from(GROUPS))
    lead = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    shape = (*lead, group_size * data.draw(st.integers(1, 3)))
    storage = storage_dtype(dtype)
    integers = hnp.arrays(f"<u{storage.itemsize}", shape)
    array = data.draw(integers).view(storage)
    scale = data.draw(st.sampled_from((None, *DTYPES)))
    bits = data.draw(st.sampled_from(BITS))
    arguments = (Stored(dtype, array), bits, group_size, scale)
    refused = refusal(REFERENCE, *arguments)
    assert refusal(SETS[name], *arguments) == refused
    if refused is None:
        assert_quantizes(SETS[name], *arguments)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(SETS)))
def test_any_affine_parts_rebuild_alike(data: st.DataObject, name: str) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    bits = data.draw(st.sampled_from(BITS))
    group_size = data.draw(st.sampled_from((16, 24, *GROUPS)))
    width = data.draw(st.sampled_from((32, 96, 128, 384)))
    lead = data.draw(hnp.array_shapes(max_dims=2, max_side=3))
    shape = (*lead, width)
    storage = storage_dtype(dtype)
    groups = (*lead, -(-width // group_size))
    numbers = hnp.arrays(f"<u{storage.itemsize}", groups)
    words = hnp.arrays("<u4", (*lead, width * bits // 32))
    parts = {
        "codes": Stored("U32", data.draw(words)),
        "scales": Stored(dtype, data.draw(numbers).view(storage)),
        "biases": Stored(dtype, data.draw(numbers).view(storage)),
    }
    scheme = Affine(bits, group_size, (dtype,), "u32-lsb")
    found = SETS[name].dequantize(scheme, parts, shape)
    assert_same(found, REFERENCE.dequantize(scheme, parts, shape), "rebuilt")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(SETS)),
    dtype=st.sampled_from(DTYPES),
    bits=st.sampled_from(BITS),
    magnitude=st.integers(-32, 7),
)
def test_parts_of_one_magnitude_rebuild_alike(
    seed: int, name: str, dtype: str, bits: int, magnitude: int
) -> None:
    """No weight is beyond float16; the least are subnormal there, or nothing."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(2, 3, 4)) * 2.0**magnitude
    numbers[1, 0, :2] = 0.0, -0.0
    numbers[0, 0, :2] *= 2.0**-8
    scales, biases = (from_float32(each.astype(np.float32), dtype) for each in numbers)
    codes = rng.integers(0, 2**32, (3, 4 * bits), np.uint32)
    parts = {"codes": Stored("U32", codes), "scales": scales, "biases": biases}
    assert_rebuilds(SETS[name], Affine(bits, 32, (dtype,), "u32-lsb"), parts, (3, 128))


@pytest.mark.parametrize("scheme", MICROSCALING, ids=str)
def test_near_small_floats_rebuild_alike(
    kernels: Kernels, scheme: Microscaling
) -> None:
    rng = np.random.default_rng(4)
    shape = (4, 192)
    packing = PACKINGS[scheme.pack]
    codes = rng.integers(0, 1 << scheme.bits, shape, dtype=np.uint8)
    low, high = (100, 132) if scheme.scale == "e8m0" else (0, 64)
    scales = rng.integers(low, high, (4, 192 // scheme.group_size), np.uint8)
    parts = {
        "codes": Stored(packing.layout.word_dtype, packing.pack(codes, scheme.bits)),
        "scales": Stored("U8", scales),
        "global_scale": Stored("F32", np.array([2000], np.float32)),
    }
    assert_rebuilds(kernels, scheme, parts, shape)


@pytest.mark.parametrize("scheme", MICROSCALING, ids=str)
def test_small_floats_rebuild_alike(kernels: Kernels, scheme: Microscaling) -> None:
    rng = np.random.default_rng(3)
    shape = (2, 3, 192)
    finite = [
        c for c, v in enumerate(ELEMENTS[scheme.scale].values) if math.isfinite(v)
    ]
    packing = PACKINGS[scheme.pack]
    codes = rng.integers(0, 1 << scheme.bits, shape, dtype=np.uint8)
    scales = rng.choice(finite, (2, 3, 192 // scheme.group_size)).astype(np.uint8)
    parts = {
        "codes": Stored(packing.layout.word_dtype, packing.pack(codes, scheme.bits)),
        "scales": Stored("U8", scales),
        "global_scale": Stored("F32", np.array([3.5, 2e30], np.float32)),
    }
    assert_rebuilds(kernels, scheme, parts, shape)
    scales[1, 2, 0] = 255
    assert_rebuilds(kernels, scheme, parts, shape)


@pytest.mark.parametrize("dtype", ["F32", "BF16", "F16"])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_same_as_mlx(kernels: Kernels, bits: int, dtype: str) -> None:
    mx = pytest.importorskip("mlx.core")
    weight = from_float32(tricky(np.random.default_rng(20 + bits)), dtype)
    array = mx.array(weight.array)
    array = array.view(mx.bfloat16) if dtype == "BF16" else array
    for group_size in GROUPS:
        peer = mx.quantize(array, group_size=group_size, bits=bits)
        made = kernels.quantize(weight, bits, group_size)
        np.testing.assert_array_equal(made.words, np.array(peer[0]))
        for found, part in ((made.scales, peer[1]), (made.biases, peer[2])):
            plain = part.view(mx.uint16) if dtype == "BF16" else part
            assert_same(found, Stored(dtype, np.array(plain)), "scales or biases")
        scheme = Affine(bits, group_size, (dtype,), "u32-lsb")
        parts = {
            "codes": Stored("U32", made.words),
            "scales": made.scales,
            "biases": made.biases,
        }
        again = mx.dequantize(*peer, group_size=group_size, bits=bits)
        again = again.view(mx.uint16) if dtype == "BF16" else again
        rebuilt = kernels.dequantize(scheme, parts, weight.shape)
        assert_same(rebuilt, Stored(dtype, np.array(again)), "rebuilt")
