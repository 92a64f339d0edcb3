"""Torch quantizes as the reference does: bits, devices' blocks, and refusals."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qmanifest.errors import BackendError, LayoutError, PackingError
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Stored, from_float32, storage_dtype
from qmanifest.schemes import Affine, Microscaling
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
else:
    torch = pytest.importorskip("torch")

from qmanifest.backends import pytorch
from qmanifest.backends.pytorch import quantizing, quantizing_groups
from qmanifest.backends.pytorch.weight import tensor_of

FLOATS = ("F32", "F16", "BF16")


def expected(weight: Stored, scheme: Affine) -> dict[str, Stored]:
    made = quantize_affine(weight, scheme.bits, scheme.group_size, scheme.scale[0])
    packing = PACKINGS[scheme.pack]
    words = packing.pack(made.codes, scheme.bits)
    return {
        "codes": Stored(packing.layout.word_dtype, words),
        "scales": made.scales,
        "biases": made.biases,
    }


def assert_same(found: pytorch.QuantizedWeight, parts: dict[str, Stored]) -> None:
    assert list(found.parts) == list(parts)
    for role, part in parts.items():
        tensor = tensor_of(part)
        assert found.parts[role].dtype == tensor.dtype
        assert found.parts[role].shape == tensor.shape
        kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.itemsize]
        assert torch.equal(found.parts[role].view(kind), tensor.view(kind)), role


def refused(run: Callable[[], object]) -> str | None:
    """Give the words with which a weight is refused, if it is."""
    try:
        run()
    except PackingError as error:
        return str(error)
    return None


def hard_rows() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Rows of 384 values with ties, equal values, zeros, and the least floats."""
    rng = np.random.default_rng(7)
    normal = rng.normal(size=(5, 384))
    rows = [
        *(normal, normal * 1e-39, normal / 500 + 1000, rng.integers(-15, 16, (3, 384))),
        *(np.zeros((1, 384)), -np.zeros((1, 384)), np.full((1, 384), -2.1)),
        *(rng.random((2, 384)) + 1, -rng.random((2, 384)) - 1, normal * 6e3),
        *(rng.choice([0.0, -0.0, 1.0], (3, 384)), rng.integers(-9, 9, (3, 384)) * 1e-9),
    ]
    return np.concatenate(rows).astype(np.float32)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bits", range(1, 9))
def test_every_width_is_the_reference(
    bits: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantizing_groups, "BLOCK_ELEMENTS", 4096)
    weight = from_float32(hard_rows(), dtype)
    for group_size, scale in product((16, 24, 32, 64, 128, 384), FLOATS):
        scheme = Affine(bits, group_size, (scale,), "u32-lsb")
        parts = expected(weight, scheme)
        tensor = tensor_of(weight)
        assert_same(pytorch.quantize(tensor, scheme), parts)
        made = quantizing.by_torch(tensor, scheme)
        if bits > 1:
            assert made is not None
            assert_same(made, parts)


@settings(deadline=None)
@given(data=st.data())
def test_any_floats_quantize_or_are_refused_alike(data: st.DataObject) -> None:
    """Arrays of any bit patterns: NaN, infinity, subnormals and overflow included."""
    dtype, scale = (data.draw(st.sampled_from(FLOATS)) for _ in range(2))
    bits = data.draw(st.integers(2, 8))
    group_size = data.draw(st.sampled_from((8, 32, 64)))
    lead = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    shape = (*lead, 32 * data.draw(st.integers(1, 3)) * group_size // 8)
    storage = storage_dtype(dtype)
    array = data.draw(hnp.arrays(f"<u{storage.itemsize}", shape)).view(storage)
    weight, scheme = Stored(dtype, array), Affine(bits, group_size, (scale,), "u32-lsb")
    made = quantizing.by_torch(tensor_of(weight), scheme)
    refusal = refused(lambda: expected(weight, scheme))
    assert (made is None) == (refusal is not None)
    if made is None:
        assert refused(lambda: pytorch.quantize(tensor_of(weight), scheme)) == refusal
    else:
        assert_same(made, expected(weight, scheme))


@pytest.mark.parametrize("kernels", ["reference", ""])
def test_what_is_quantized_is_a_weight(
    kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMANIFEST_KERNELS", kernels)
    dense = torch.nn.Linear(256, 24, bias=False).weight
    weight = pytorch.quantize(dense, Affine(8, 32, ("F32",), "u32-lsb"))
    assert weight.shape == (24, 256)
    assert not weight.parts["scales"].requires_grad
    assert (pytorch.dequantize(weight) - dense).abs().max() < 0.0005
    turned = pytorch.quantize(dense.T.contiguous().T, weight.scheme)  # type: ignore[arg-type] # affine
    assert torch.equal(turned.words, weight.words)


def test_other_packings_and_ranks() -> None:
    weight = from_float32(hard_rows().reshape(2, -1, 384), "BF16")
    scheme = Affine(4, 32, ("F16",), "u8-nibbles")
    assert_same(pytorch.quantize(tensor_of(weight), scheme), expected(weight, scheme))


def test_weights_without_elements() -> None:
    weight = pytorch.quantize(torch.empty(3, 0), Affine(4, 64, ("F32",), "u32-lsb"))
    assert {role: tuple(part.shape) for role, part in weight.parts.items()} == {
        "codes": (3, 0),
        "scales": (3, 0),
        "biases": (3, 0),
    }


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_everything_stays_on_the_device(bits: int) -> None:
    """A tensor of another device beside those of `meta` would be refused."""
    values = torch.empty(5, 24, device="meta", dtype=torch.bfloat16)
    octets, *numbers = quantizing_groups.quantize_groups(values, bits)
    assert {each.device.type for each in (octets, *numbers)} == {"meta"}
    assert octets.shape == (15 * bits,)
    assert [each.shape for each in numbers] == [(5,), (5,)]


def test_refusals() -> None:
    affine = Affine(4, 64, ("F16",), "u32-lsb")
    tiny = Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none")
    with pytest.raises(BackendError, match="not as microscaling"):
        pytorch.quantize(torch.zeros(2, 64), tiny)  # type: ignore[arg-type] # on purpose
    with pytest.raises(BackendError, match=r"cannot be torch\.complex128"):
        pytorch.quantize(torch.zeros(2, 64, dtype=torch.complex128), affine)
    with pytest.raises(PackingError, match="not F64"):
        pytorch.quantize(torch.zeros(2, 64, dtype=torch.float64), affine)
    with pytest.raises(PackingError, match="not whole groups of 64"):
        pytorch.quantize(torch.zeros(2, 96), affine)
    with pytest.raises(PackingError, match="not whole groups of 64"):
        pytorch.quantize(torch.tensor(1.0), affine)
    with pytest.raises(PackingError, match="not 9"):
        pytorch.quantize(torch.zeros(2, 64), Affine(9, 64, ("F16",), "u32-lsb"))
    with pytest.raises(LayoutError, match="not a whole number"):
        pytorch.quantize(torch.zeros(2, 4), Affine(4, 4, ("F16",), "u32-lsb"))
    with pytest.raises(PackingError, match="2 of 2 groups span more than a F16 scale"):
        pytorch.quantize(torch.tensor([[1e30, *[0] * 63]] * 2), affine)
    with pytest.raises(PackingError, match="1 of 64 values are NaN or infinite"):
        pytorch.quantize(torch.tensor([[torch.inf, *[0] * 63]]), affine)
