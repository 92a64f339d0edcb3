"""Torch against the numpy reference: weights, rebuilding, products and gradients."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from qmanifest.backends import reference
from qmanifest.backends.base import MissingLibraryError
from qmanifest.errors import BackendError
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Float32, Stored, from_float32
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")

from qmanifest.backends import pytorch

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
AFFINE = [
    Affine(bits, group, (dtype,), "u32-lsb")
    for bits in range(1, 9)
    for group in (32, 64, 128)
    for dtype in DTYPES
]
OTHERS: list[Scheme] = [
    Affine(4, 32, ("F16",), "u8-nibbles"),
    ZeroPoint(4, 64, ("F16",), ("U8",), "u8-nibbles"),
    ZeroPoint(4, 32, ("BF16",), ("BF16",), "u32-lsb"),
    ZeroPoint(3, 32, ("F32",), ("F16",), "u32-lsb"),
    Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
    Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
]
EVERY = [*AFFINE, *OTHERS]
MATRIX = (40, 256)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebuild 1024 elements at a time, so that small weights have several blocks."""
    monkeypatch.setattr(pytorch.ops, "BLOCK_ELEMENTS", 1024)


def random_parts(scheme: Scheme, shape: tuple[int, ...]) -> dict[str, Stored]:
    """Make finite parts of a weight, about as large as those of a real one."""
    rng = np.random.default_rng(len(str(scheme)) + scheme.bits)
    parts = {}
    for role, dtypes, size in scheme.parts(shape):
        assert size is not None
        if role == "codes":
            codes = rng.integers(0, 2**scheme.bits, shape, np.uint8)
            if scheme.kind == "microscaling" and scheme.bits == 8:
                codes &= np.uint8(0x77)  # no code of NaN
            parts[role] = Stored(
                dtypes[0], PACKINGS[scheme.pack].pack(codes, scheme.bits)
            )
        elif dtypes[0] == "U8":
            low, high = (110, 126) if scheme.kind == "microscaling" else (0, 16)
            parts[role] = Stored("U8", rng.integers(low, high, size, np.uint8))
        else:
            values = np.asarray(rng.normal(size=size), np.float32)
            parts[role] = from_float32(values, dtypes[0])
    return parts


def as_numpy(tensor: torch.Tensor) -> Float32:
    array: Float32 = tensor.detach().float().numpy()
    return array


@pytest.mark.parametrize("scheme", EVERY, ids=str)
def test_dequantize_equals_the_reference(scheme: Scheme) -> None:
    parts = random_parts(scheme, MATRIX)
    weight = pytorch.weight_from_parts(scheme, MATRIX, parts)
    made = pytorch.dequantize(weight)
    assert made.dtype == weight.dtype
    expected = reference.dequantize(scheme, parts, MATRIX)
    np.testing.assert_array_equal(as_numpy(made), expected)
    for code, dtype in DTYPES.items():
        cast = pytorch.dequantize(weight, dtype)
        assert cast.dtype == dtype
        bits = from_float32(expected, code)
        np.testing.assert_array_equal(
            as_numpy(cast), as_numpy(pytorch.weight.tensor_of(bits))
        )


@pytest.mark.parametrize("scheme", OTHERS, ids=str)
@pytest.mark.parametrize("lead", [(3,), (2, 2), (0,)])
def test_dequantize_experts(scheme: Scheme, lead: tuple[int, ...]) -> None:
    shape = (*lead, 4, 64)
    parts = random_parts(scheme, shape)
    made = pytorch.dequantize(pytorch.weight_from_parts(scheme, shape, parts))
    expected = reference.dequantize(scheme, parts, shape)
    np.testing.assert_array_equal(as_numpy(made), expected)


@pytest.mark.usefixtures("small_blocks")
def test_dequantize_more_rows_than_one_block() -> None:
    scheme, shape = Affine(3, 64, ("BF16",), "u32-lsb"), (70, 128)
    parts = random_parts(scheme, shape)
    made = pytorch.dequantize(pytorch.weight_from_parts(scheme, shape, parts))
    expected = reference.dequantize(scheme, parts, shape)
    np.testing.assert_array_equal(as_numpy(made), expected)


def test_dequantize_rows_with_a_short_group() -> None:
    scheme, shape = Affine(8, 32, ("F32",), "u32-lsb"), (3, 44)
    parts = random_parts(scheme, shape)
    made = pytorch.dequantize(pytorch.weight_from_parts(scheme, shape, parts))
    expected = reference.dequantize(scheme, parts, shape)
    np.testing.assert_array_equal(as_numpy(made), expected)


def test_not_finite_scales_stay_so() -> None:
    scheme = Affine(4, 32, ("F16",), "u32-lsb")
    parts = random_parts(scheme, (2, 64))
    parts["scales"].array[0, 0] = np.nan
    parts["biases"].array[1, 1] = np.inf
    made = pytorch.dequantize(pytorch.weight_from_parts(scheme, (2, 64), parts))
    expected = reference.dequantize(scheme, parts, (2, 64))
    np.testing.assert_array_equal(as_numpy(made), expected)


def assert_near(
    found: torch.Tensor, x: torch.Tensor, weight: Float32, *, double: bool = False
) -> None:
    """Compare with the float64 product, within what summing in float32 can cost.

    The sum of K products is off by at most K roundings of the sum of magnitudes, and
    the result is rounded once more to the dtype of `x`, where float16 is no finer than
    2**-24.
    """
    exact = x.detach().double().numpy()
    expected = reference.matmul(exact, weight)
    magnitude = reference.matmul(np.abs(exact), np.abs(weight))
    step = 2.0**-53 if double else 2.0**-24
    last = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}.get(x.dtype, step)
    bound = weight.shape[1] * step * magnitude + last * np.abs(expected) + 2.0**-25
    assert found.dtype == x.dtype
    assert found.shape == expected.shape
    error = np.abs(found.detach().double().numpy() - expected)
    assert (error <= bound).all(), f"off by up to {(error / bound).max()} bounds"


@pytest.mark.parametrize("x_dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("scheme", EVERY, ids=str)
def test_matmul_is_near_the_float64_product(
    scheme: Scheme, x_dtype: torch.dtype
) -> None:
    parts = random_parts(scheme, MATRIX)
    weight = pytorch.weight_from_parts(scheme, MATRIX, parts)
    x = torch.randn(3, MATRIX[1], generator=torch.Generator().manual_seed(0))
    x = (x / 16).to(x_dtype)
    dense = reference.dequantize(scheme, parts, MATRIX)
    assert_near(pytorch.quantized_matmul(x, weight), x, dense)


@pytest.mark.parametrize(
    "batch", [(), (0,), (1,), (3,), (2, 3), (2, 0, 5), (2, 1, 1, 3)]
)
def test_matmul_of_any_batch(batch: tuple[int, ...]) -> None:
    scheme = Affine(4, 64, ("F16",), "u32-lsb")
    parts = random_parts(scheme, MATRIX)
    weight = pytorch.weight_from_parts(scheme, MATRIX, parts)
    x = torch.randn(*batch, MATRIX[1], requires_grad=True)
    product = pytorch.quantized_matmul(x, weight)
    assert_near(product, x, reference.dequantize(scheme, parts, MATRIX))
    (gradient,) = torch.autograd.grad(product.sum(), x)
    assert gradient.shape == x.shape


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", [(0, 64), (1, 64), (33, 64), (9, 2048)])
def test_matmul_of_any_weight(shape: tuple[int, int]) -> None:
    scheme = Affine(4, 64, ("F32",), "u32-lsb")
    parts = random_parts(scheme, shape)
    weight = pytorch.weight_from_parts(scheme, shape, parts)
    x = torch.randn(2, shape[1], dtype=torch.float64)
    dense = reference.dequantize(scheme, parts, shape)
    product = pytorch.quantized_matmul(x, weight)
    assert_near(product, x, dense, double=True)


def test_matmul_of_a_strided_input() -> None:
    scheme = Affine(4, 64, ("F32",), "u32-lsb")
    parts = random_parts(scheme, MATRIX)
    weight = pytorch.weight_from_parts(scheme, MATRIX, parts)
    x = torch.randn(MATRIX[1], 3, 2).permute(2, 1, 0)
    assert_near(
        pytorch.quantized_matmul(x, weight),
        x,
        reference.dequantize(scheme, parts, MATRIX),
    )


@pytest.mark.parametrize("scheme", [AFFINE[0], AFFINE[23], *OTHERS], ids=str)
def test_gradients_and_their_gradients(scheme: Scheme) -> None:
    shape = (3, 128)
    weight = pytorch.weight_from_parts(scheme, shape, random_parts(scheme, shape))
    x = torch.randn(2, 128, dtype=torch.float64, requires_grad=True)

    def product(x: torch.Tensor) -> torch.Tensor:
        return pytorch.quantized_matmul(x, weight).tanh()

    assert torch.autograd.gradcheck(product, (x,))
    assert torch.autograd.gradgradcheck(product, (x,))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("x_dtype", DTYPES.values(), ids=DTYPES)
def test_gradient_is_that_of_the_dense_weight(x_dtype: torch.dtype) -> None:
    scheme, shape = Affine(4, 64, ("F16",), "u32-lsb"), (70, 128)
    parts = random_parts(scheme, shape)
    weight = pytorch.weight_from_parts(scheme, shape, parts)
    x = torch.zeros(2, shape[1], dtype=x_dtype, requires_grad=True)
    towards = torch.randn(2, shape[0]).to(x_dtype)
    product = pytorch.quantized_matmul(x, weight)
    (gradient,) = torch.autograd.grad(product, x, towards)
    assert_near(gradient, towards, reference.dequantize(scheme, parts, shape).T)


def test_autocast_does_not_lower_the_precision() -> None:
    scheme = Affine(4, 64, ("F32",), "u32-lsb")
    weight = pytorch.weight_from_parts(scheme, MATRIX, random_parts(scheme, MATRIX))
    x = torch.randn(2, MATRIX[1])
    plain = pytorch.quantized_matmul(x, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(pytorch.quantized_matmul(x, weight), plain)


def test_matmul_refuses_what_does_not_fit() -> None:
    scheme = Affine(4, 32, ("F32",), "u32-lsb")
    weight = pytorch.weight_from_parts(scheme, (4, 64), random_parts(scheme, (4, 64)))
    for bad in (torch.zeros(2, 63), torch.zeros(2, 64, dtype=torch.int64)):
        with pytest.raises(BackendError, match=r"expected floats of \(\.\.\., 64\)"):
            pytorch.quantized_matmul(bad, weight)
    with pytest.raises(BackendError, match="expected floats"):
        pytorch.quantized_matmul(torch.tensor(1.0), weight)
    with pytest.raises(BackendError, match="x is on meta"):
        pytorch.quantized_matmul(torch.zeros(2, 64, device="meta"), weight)
    shape = (2, 4, 64)
    experts = pytorch.weight_from_parts(scheme, shape, random_parts(scheme, shape))
    with pytest.raises(BackendError, match="one expert at a time"):
        pytorch.quantized_matmul(torch.zeros(2, 64), experts)


def test_weight_keeps_what_is_stored() -> None:
    scheme = Affine(4, 32, ("BF16",), "u32-lsb")
    parts = random_parts(scheme, (4, 64))
    parts["unrelated"] = Stored("U8", np.zeros(3, np.uint8))
    weight = pytorch.weight_from_parts(scheme, (4, 64), parts)
    assert set(weight.parts) == {"codes", "scales", "biases"}
    assert weight.words.dtype == torch.int32
    assert weight.dtype == torch.bfloat16
    assert weight.nbytes == 4 * 32 + 2 * 4 * 2 * 2
    assert weight.device == torch.device("cpu")
    assert weight.to("meta").device == torch.device("meta")
    assert weight.to("cpu").words is weight.words


def test_weight_refuses_parts_that_do_not_fit() -> None:
    scheme = Affine(4, 32, ("BF16",), "u32-lsb")
    parts = random_parts(scheme, (4, 64))
    with pytest.raises(BackendError, match=r"codes are U32 \[4, 8\]"):
        pytorch.weight_from_parts(scheme, (4, 128), parts)


@pytest.mark.parametrize("dtype", ["BOOL", "U8", "I64", "U16", "U32", "F16", "BF16"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_stored_tensors_in_torch(dtype: str, shape: tuple[int, ...]) -> None:
    from qmanifest.packings.arrays import storage_dtype

    array = np.ones(shape, storage_dtype(dtype))
    array.flags.writeable = False
    tensor = pytorch.weight.tensor_of(Stored(dtype, array))
    assert tuple(tensor.shape) == shape
    assert tensor.element_size() == array.itemsize


def test_stored_tensor_that_torch_has_no_dtype_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    float8 = Stored("F8_E4M3", np.full((1, 2), 0x38, np.uint8))
    assert (pytorch.weight.tensor_of(float8).float() == 1).all()
    monkeypatch.delattr(torch, "float8_e4m3fn")
    with pytest.raises(BackendError, match="has no dtype for F8_E4M3"):
        pytorch.weight.tensor_of(float8)


def test_without_torch_the_message_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "try:\n    import qmanifest.backends.pytorch\n"
        "except ImportError as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(MissingLibraryError.__name__)
    assert "pip install 'qmanifest[torch]'" in done.stdout
    assert issubclass(MissingLibraryError, BackendError)
