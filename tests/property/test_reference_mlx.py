"""The numpy reference against mlx itself, with any stored number, finite or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmanifest.backends.reference import dequantize
from qmanifest.packings.arrays import Stored, to_float32
from qmanifest.schemes import Affine, Microscaling

mx = pytest.importorskip("mlx.core")

MODES = {
    "mxfp4": Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    "mxfp8": Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    "nvfp4": Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
}
STORAGE = {"F32": "<u4", "F16": "<u2", "BF16": "<u2"}


def to_mlx(stored: Stored) -> Any:  # noqa: ANN401 - mlx has no types
    array = mx.array(np.ascontiguousarray(stored.array))
    return array.view(mx.bfloat16) if stored.dtype == "BF16" else array


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_affine_with_any_scale_and_bias(data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from((1, 2, 3, 4, 5, 6, 8)))
    group_size = data.draw(st.sampled_from((32, 64, 128)))
    dtype = data.draw(st.sampled_from(list(STORAGE)))
    seed = data.draw(st.integers(0, 2**32 - 1))
    words = np.random.default_rng(seed).integers(0, 2**32, (2, 4 * bits), np.uint32)
    any_bits = hnp.arrays(STORAGE[dtype], (2, 128 // group_size))
    viewed = "<f2" if dtype == "F16" else "<f4" if dtype == "F32" else "<u2"
    scales, biases = (Stored(dtype, data.draw(any_bits).view(viewed)) for _ in "sb")
    parts = {"codes": Stored("U32", words), "scales": scales, "biases": biases}
    found = dequantize(Affine(bits, group_size, (dtype,), "u32-lsb"), parts, (2, 128))
    peer = mx.dequantize(
        mx.array(words), to_mlx(scales), to_mlx(biases), group_size, bits
    )
    np.testing.assert_array_equal(found, np.array(peer.astype(mx.float32)))


@pytest.mark.parametrize("mode", MODES)
def test_every_code_with_every_scale(mode: str) -> None:
    scheme = MODES[mode]
    words = np.tile(np.arange(256, dtype=np.uint8), (256, 1)).view(np.uint32)
    width = words.shape[1] * 32 // scheme.bits
    scales = np.repeat(
        np.arange(256, dtype=np.uint8)[:, None], width // scheme.group_size, axis=1
    )
    parts = {"codes": Stored("U32", words), "scales": Stored("U8", scales)}
    found = dequantize(scheme, parts, (256, width))
    peer = np.array(
        mx.dequantize(mx.array(words), mx.array(scales), mode=mode, dtype=mx.float32)
    )
    known = slice(0, 255 if scheme.scale == "e8m0" else 256)
    np.testing.assert_array_equal(found[known], peer[known])
    if scheme.scale == "e8m0":
        # The one deliberate difference: OCP's NaN, where mlx has 2**128.
        assert np.isnan(found[255]).all()
        assert not np.isnan(peer[255]).all()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    amax=st.floats(2.0**-100, 2.0**100, width=32),
)
def test_global_scale(seed: int, amax: float) -> None:
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, (4, 16), np.uint32)
    scales = rng.integers(0, 256, (4, 8), np.uint8)
    parts = {
        "codes": Stored("U32", words),
        "scales": Stored("U8", scales),
        "global_scale": Stored("F32", np.array([amax], np.float32)),
    }
    scheme = Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb")
    found = dequantize(scheme, parts, (4, 128))
    peer = mx.dequantize(
        mx.array(words),
        mx.array(scales),
        mode="nvfp4",
        global_scale=mx.array(np.array([amax], np.float32)),
        dtype=mx.float32,
    )
    np.testing.assert_array_equal(found, np.array(peer))


def test_widening_is_exact_as_in_mlx() -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    found = to_float32(Stored("BF16", every))
    peer = np.array(mx.array(every).view(mx.bfloat16).astype(mx.float32))
    np.testing.assert_array_equal(found, peer)
