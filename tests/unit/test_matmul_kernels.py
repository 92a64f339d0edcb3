"""The compiled products: exact weights, on any CPU, compiled once, or left out."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numba")
if TYPE_CHECKING:
    from pathlib import Path

    import torch
else:
    torch = pytest.importorskip("torch")

from qmanifest import kernels, threads
from qmanifest.backends.base import MissingLibraryError
from qmanifest.backends.pytorch import (
    QuantizedWeight,
    compiled,
    dequantize,
    ops,
    quantized_matmul,
)
from qmanifest.backends.pytorch.rebuilding import by_row, rebuild
from qmanifest.errors import BackendError
from qmanifest.kernels import coding, cpu
from qmanifest.schemes import Affine

SCALES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@pytest.fixture(autouse=True)
def default_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing outside choose the kernels."""
    monkeypatch.delenv("QMANIFEST_KERNELS", raising=False)


def make(
    bits: int, group: int, scale: str, shape: tuple[int, int] = (9, 256)
) -> QuantizedWeight:
    """Make a weight of random codes."""
    rows, width = shape
    seed = torch.Generator().manual_seed(bits * group)
    octets = (rows, width * bits // 8)
    codes = torch.randint(0, 256, octets, dtype=torch.uint8, generator=seed)
    scales, biases = (
        torch.randn(rows, width // group, generator=seed).to(SCALES[scale])
        for _ in range(2)
    )
    parts = {"codes": codes.view(torch.int32), "scales": scales, "biases": biases}
    return QuantizedWeight(Affine(bits, group, (scale,), "u32-lsb"), shape, parts)


def columns(weight: QuantizedWeight) -> torch.Tensor:
    """Find the weight by multiplying with it: one input for every column."""
    return quantized_matmul(torch.eye(weight.shape[1]), weight).T


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bits", range(1, 9))
def test_products_meet_the_very_weights(
    bits: int, scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops, "TILED_INPUTS", 1 << 20)
    weight = make(bits, 64, scale)
    expected = rebuild(weight.scheme, by_row(weight), weight.shape[1]).float()
    assert torch.equal(columns(weight), expected)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bits", [2, 3, 4])
def test_weights_are_the_same_without_a_lookup(
    bits: int, scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "has_lookup", lambda: False)
    monkeypatch.setattr(ops, "TILED_INPUTS", 1 << 20)
    weight = make(bits, 32, scale)
    expected = rebuild(weight.scheme, by_row(weight), weight.shape[1])
    assert torch.equal(columns(weight), expected.float())
    assert torch.equal(dequantize(weight), expected)


@pytest.mark.parametrize("inputs", [*range(1, 10), 16, 17, 30])
def test_any_number_of_inputs(inputs: int) -> None:
    weight = make(4, 128, "F16")
    x = torch.randn(inputs, 256)
    exact = x.double() @ dequantize(weight).double().T
    off = (quantized_matmul(x, weight).double() - exact).abs().max()
    assert off <= 2e-6 * exact.abs().max()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_one_input_is_summed_well(bits: int, group: int, scale: str) -> None:
    weight = make(bits, group, scale, (10, 4096))
    x = torch.randn(1, 4096, generator=torch.Generator().manual_seed(bits))
    exact = x.double() @ dequantize(weight).double().T
    off = (quantized_matmul(x, weight).double() - exact).abs().max()
    assert off <= 2e-6 * exact.abs().max()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("bits", range(1, 9))
def test_rebuilding_past_the_cache(
    bits: int, group: int, scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coding, "_LARGE", 0)
    weight = make(bits, group, scale)
    expected = rebuild(weight.scheme, by_row(weight), weight.shape[1])
    kernel = compiled.packed(weight.scheme, by_row(weight), weight.shape[1])
    assert kernel is not None
    for dtype in (torch.float32, expected.dtype):
        memory = torch.zeros(expected.numel() + 64, dtype=dtype)
        for start in (0, 1, 8):  # aligned or not, as `torch.zeros` is
            made = memory[start : start + expected.numel()].view(expected.shape)
            kernel.rebuild(slice(0, expected.shape[0]), made)
            assert torch.equal(made, expected.to(dtype))
        assert not memory[expected.numel() + 8 :].any()


def test_what_is_written_past_the_cache() -> None:
    assert coding.streams(1 << 20, 1 << 26)
    assert not coding.streams((1 << 20) + 8, 1 << 26)
    assert not coding.streams(1 << 20, 1 << 20)


def test_what_is_not_finite_stays_so() -> None:
    for scale in SCALES:
        for bits in (4, 8):
            weight = make(bits, 32, scale)
            weight.parts["scales"][0, 0] = float("nan")
            weight.parts["biases"][1, 1] = float("-inf")
            made = quantized_matmul(torch.ones(1, 256), weight)[0]
            assert made[0].isnan()
            assert made[1] == float("-inf")
            assert made[2:].isfinite().all()


def test_rows_that_do_not_lie_together() -> None:
    weight = make(4, 32, "BF16", (6, 128))
    parts = {role: part.T.contiguous().T for role, part in weight.parts.items()}
    scattered = QuantizedWeight(weight.scheme, weight.shape, parts)
    x = torch.randn(2, 128)
    assert torch.equal(quantized_matmul(x, scattered), quantized_matmul(x, weight))
    assert torch.equal(dequantize(scattered), dequantize(weight))


def test_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, x = make(4, 32, "F32", (37, 128)), torch.randn(3, 128)
    alone = quantized_matmul(x, weight)
    monkeypatch.setattr(threads, "LEAST_PRODUCTS", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(quantized_matmul(x, weight), alone)


def test_every_row_is_in_one_part() -> None:
    for rows, count in [(1, 4), (2, 4), (7, 3), (8, 1)]:
        parts: list[tuple[int, int]] = []
        threads.over_rows(
            lambda start, stop, to=parts: to.append((start, stop)),  # type: ignore[misc] # mypy cannot infer a lambda's default
            rows,
            rows * threads.LEAST_PRODUCTS,
            count,
        )
        found = [row for start, stop in sorted(parts) for row in range(start, stop)]
        assert found == list(range(rows))
        assert len(parts) == min(rows, count)


def test_weights_that_the_kernels_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = make(4, 32, "F16")
    parts = by_row(weight)
    assert compiled.packed(weight.scheme, parts, 256) is not None
    assert compiled.packed(Affine(4, 16, ("F16",), "u32-lsb"), parts, 256) is None
    assert compiled.packed(weight.scheme, parts, 250) is None
    elsewhere = {role: part.to("meta") for role, part in parts.items()}
    assert compiled.packed(weight.scheme, elsewhere, 256) is None
    monkeypatch.setattr(cpu, "has_float16", lambda: False)
    assert compiled.packed(weight.scheme, parts, 256) is None


def test_kernels_are_chosen_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QMANIFEST_KERNELS", "fast")
    assert compiled.enabled()
    monkeypatch.setenv("QMANIFEST_KERNELS", "reference")
    assert not compiled.enabled()
    monkeypatch.setenv("QMANIFEST_KERNELS", "quick")
    with pytest.raises(BackendError, match="'quick'; set it to reference or fast"):
        compiled.enabled()


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_compiled_runs", lambda: False)
    monkeypatch.setattr(kernels, "_chosen", kernels._chosen.__wrapped__)  # noqa: SLF001 - a choice is made once
    weight, x = make(4, 32, "F32"), torch.randn(2, 256)
    assert not compiled.enabled()
    product = quantized_matmul(x, weight)
    torch.testing.assert_close(product, x @ dequantize(weight).T, atol=1e-3, rtol=1e-5)
    monkeypatch.setenv("QMANIFEST_KERNELS", "fast")
    with pytest.raises(MissingLibraryError, match=r"pip install 'qmanifest\[fast\]'"):
        compiled.enabled()


ANY_CPU = """
import torch
from qmanifest.backends.pytorch import QuantizedWeight, dequantize, quantized_matmul
from qmanifest.kernels.coding import Coding
from qmanifest.kernels.matmul import product
from qmanifest.schemes import Affine
for bits, dtype, code in (4, torch.float32, "F32"), (5, torch.bfloat16, "BF16"):
    codes = torch.arange(16 * bits, dtype=torch.int32).view(8, -1) * 0x9E3779B
    scales = torch.ones(8, 2, dtype=dtype)
    parts = {"codes": codes, "scales": scales, "biases": scales}
    weight = QuantizedWeight(Affine(bits, 32, (code,), "u32-lsb"), (8, 64), parts)
    made = quantized_matmul(torch.eye(64)[:8], weight).T
    assert torch.equal(made, dequantize(weight)[:, :8].float())
    used = Coding(bits, 32, code, False)
    statistics = product(used, 8).stats
    print(sum(statistics.cache_hits.values()), sum(statistics.cache_misses.values()))
"""


def run(program: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_any_cpu_runs_them_and_compiles_once(tmp_path: Path) -> None:
    plain = {"x86_64": "x86-64", "AMD64": "x86-64"}.get(os.uname().machine, "generic")
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": plain,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "QMANIFEST_KERNELS": "fast",
    }
    outputs = [run(ANY_CPU, environment).split() for _ in range(2)]
    assert outputs == [["0", "1", "0", "1"], ["1", "0", "1", "0"]]
