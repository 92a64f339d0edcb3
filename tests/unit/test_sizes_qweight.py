"""Sizes of GPTQ's and AWQ's weights, as their byte formulas have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import index_of, lower
from support.models import save, write_json

from qmanifest.cli import main
from qmanifest.packings.arrays import Stored, to_array
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
Tensors = dict[str, "tuple[str, Shape]"]
SHAPES: Final[tuple[tuple[int, int], ...]] = ((64, 128), (96, 256), (32, 192))
"""Outputs and inputs."""


def up(numerator: int, denominator: int) -> int:
    """Divide and round up."""
    return -(-numerator // denominator)


def gptq(n: int, k: int, bits: int, group: int) -> tuple[Tensors, int]:
    """GPTQ's tensors, and the bytes of the formula."""
    groups = up(k, group) if group > 0 else 1
    words, zeros = up(k * bits, 32), up(n * bits, 32)
    tensors: Tensors = {
        "a.qweight": ("I32", (words, n)),
        "a.qzeros": ("I32", (groups, zeros)),
        "a.scales": ("F16", (groups, n)),
        "a.g_idx": ("I32", (k,)),
    }
    return tensors, 4 * words * n + 4 * groups * zeros + 2 * groups * n + 4 * k


def awq(n: int, k: int, group: int, version: str) -> tuple[Tensors, int]:
    """AWQ's tensors in a layout, and the bytes of the formula."""
    groups = k // group if group > 0 else 1
    multiple = {32: 4, 64: 2}.get(group, 1)
    width = multiple * up(up(groups, 8), multiple)
    if version == "gemm":
        tensors: Tensors = {
            "a.qweight": ("I32", (k, n // 8)),
            "a.qzeros": ("I32", (groups, n // 8)),
            "a.scales": ("F16", (groups, n)),
        }
        return tensors, n * k // 2 + groups * n // 2 + 2 * groups * n
    if version == "gemv":
        tensors = {
            "a.qweight": ("I32", (n, k // 8)),
            "a.qzeros": ("I32", (n, width)),
            "a.scales": ("F16", (n, 8 * width)),
        }
        return tensors, n * k // 2 + 4 * n * width + 16 * n * width
    tensors = {
        "a.qweight": ("I16", (n // 4, k)),
        "a.qzeros": ("F16", (8 * width, n)),
        "a.scales": ("F16", (8 * width, n)),
    }
    return tensors, n * k // 2 + 2 * 16 * n * width


def agree(
    config: Config, tensors: Tensors, shape: tuple[int, int], expected: int
) -> None:
    """Hold both sizes of a checkpoint of one weight against a formula."""
    dialect, index = config["quant_method"], index_of(tensors)
    manifest = lower(dialect, config, index).manifest
    (component,) = manifest.components
    stored = stored_sizes(index, component)
    assert stored.total - stored.overhead == expected
    assert stored.parameters == shape[0] * shape[1]
    assert stored.unknown == ()
    promised = sizes_of(manifest, {"": {"a.weight": ("F16", shape)}})
    assert promised.parameters == stored.parameters
    assert {row.tensor: row.nbytes for row in promised.rows} == {
        row.tensor: row.nbytes for row in stored.rows
    }


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("group", [32, 64, 128, -1])
@pytest.mark.parametrize("shape", SHAPES)
def test_gptq(bits: int, group: int, shape: tuple[int, int]) -> None:
    tensors, expected = gptq(*shape, bits, group)
    config = {"quant_method": "gptq", "bits": bits, "group_size": group}
    agree(config, tensors, shape, expected)


@pytest.mark.parametrize("version", ["gemm", "gemv", "gemv_fast"])
@pytest.mark.parametrize("group", [32, 64, -1])
@pytest.mark.parametrize("shape", SHAPES)
def test_awq(version: str, group: int, shape: tuple[int, int]) -> None:
    tensors, expected = awq(*shape, group, version)
    config = {"quant_method": "awq", "group_size": group, "version": version}
    agree(config, tensors, shape, expected)


@pytest.mark.parametrize("shape", [(256, 128), (512, 384)])
@pytest.mark.parametrize("group", [128, -1])
def test_marlin(shape: tuple[int, int], group: int) -> None:
    n, k = shape
    groups = k // group if group > 0 else 1
    tensors: Tensors = {
        "a.B": ("I32", (k // 16, n * 16 // 8)),
        "a.s": ("F16", (groups, n)),
    }
    config = {"quant_method": "gptq", "group_size": group, "is_marlin_format": True}
    agree(config, tensors, shape, n * k // 2 + 2 * groups * n)


def blank(index: TensorIndex) -> dict[str, Stored]:
    """Make tensors of zeros."""
    return {
        t.name: Stored(t.dtype, to_array(t.dtype, t.shape, bytes(t.nbytes)))
        for t in index.values()
    }


@pytest.mark.parametrize("dialect", ["gptq", "awq"])
def test_the_command_says_the_same(
    dialect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n, k, group = 64, 256, 64
    tensors, expected = (
        gptq(n, k, 4, group) if dialect == "gptq" else awq(n, k, group, "gemm")
    )
    tensors["norm.weight"] = ("F16", (k,))
    save(tmp_path, blank(index_of(tensors)))
    block = {"quant_method": dialect, "bits": 4, "group_size": group}
    write_json(tmp_path / "config.json", {"quantization_config": block})
    assert main(["size", str(tmp_path), "--format", "json"]) == 0
    stored = json.loads(capsys.readouterr().out)["stored"]
    assert stored["parameters"] == n * k + k
    assert stored["quantized_parameters"] == n * k
    assert stored["total"] - stored["headers"] == expected + 2 * k
