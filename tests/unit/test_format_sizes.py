"""Bytes of a weight in other libraries' formats, against formulas made by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from support import cases
from support.lowering import component, index_of

from qmanifest.dialects.bitsandbytes.schemes import INT8
from qmanifest.dialects.hqq.schemes import scheme_of as hqq_scheme
from qmanifest.dialects.quanto.schemes import scheme_of as quanto_scheme
from qmanifest.dtypes import nbytes
from qmanifest.logical import logical_shapes
from qmanifest.schemes import Codebook, Integer
from qmanifest.sizes import stored_sizes
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

SHAPES = [(48, 192), (31, 63), (1, 1), (384, 1536)]


def octets(scheme: Scheme, shape: Shape, *, without: tuple[str, ...] = ()) -> int:
    """Sum the bytes of the parts whose shape is promised, each in its first dtype."""
    return sum(
        nbytes(dtypes[0], size)
        for role, dtypes, size in scheme.parts(shape)
        if size is not None and role not in without
    )


@pytest.mark.parametrize("block", [64, 128])
@pytest.mark.parametrize("shape", SHAPES)
def test_bitsandbytes(shape: Shape, block: int) -> None:
    weights = math.prod(shape)
    blocks = -(-weights // block)
    plain = Codebook("nf4", block, 0, "u8-flat-high")
    assert octets(plain, shape) == -(-weights // 2) + 4 * blocks + 64
    nested = Codebook("nf4", block, 256, "u8-flat-high")
    several = 4 * -(-blocks // 256) + 64 + 1024
    assert octets(nested, shape) == -(-weights // 2) + blocks + several
    assert octets(INT8, shape) == weights + 4 * shape[0] + 1


def tensor(dtype: str, shape: Shape) -> TensorInfo:
    return TensorInfo("a", dtype, shape, 0, nbytes(dtype, shape), "m")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("bits", [8, 4, 3, 2, 1])
def test_hqq(bits: int, axis: int) -> None:
    shape, blocks = (48, 192), 144
    own = {"nbits": bits, "group_size": 64, "axis": axis}
    scheme = hqq_scheme(own, tensor("U8", (1, 1)), None)
    assert isinstance(scheme, Integer)
    rows, columns = (blocks, 64) if axis else (64, blocks)
    words = 4 * -(-rows // 10) if bits == 3 else -(-rows * bits // 8)
    settings = tuple(each.role for each in scheme.extras)
    found = octets(scheme, shape, without=settings)
    assert found == words * columns + 2 * 2 * blocks


@pytest.mark.parametrize("bits", [2, 4])
def test_quanto(bits: int) -> None:
    scheme = quanto_scheme(f"qint{bits}", tensor("U8", (9, 128)), None)
    assert scheme is not None
    blocks = 48 * 256 // 128
    expected = 48 * 256 * bits // 8 + 2 * 2 * blocks + 2 * 2
    assert octets(scheme, (48, 256)) == expected


@pytest.mark.parametrize("words", [40, 48, 96])
def test_exl3(words: int) -> None:
    n, k, bits = 32, 64, words / 16
    tensors: dict[str, tuple[str, Shape]] = {
        "a.trellis": ("I16", (k // 16, n // 16, words)),
        "a.suh": ("F16", (k,)),
        "a.svh": ("F16", (n,)),
    }
    found = stored("exl3", tensors)
    expected = 2 * (k // 16) * (n // 16) * 16 * bits + 2 * k + 2 * n
    assert sum(row.nbytes for row in found.rows) == expected


def stored(dialect: str, tensors: dict[str, Any]) -> Any:  # noqa: ANN401 - sizes
    index = index_of(tensors)
    config: dict[str, Any] = {"quant_method": dialect}
    if dialect == "torchao":
        config["quant_type"] = {"default": {"_type": "Int8WeightOnlyConfig"}}
    if dialect == "bitsandbytes":
        config["load_in_8bit"] = True
    return stored_sizes(index, component(dialect, config, index))


@pytest.mark.parametrize(
    ("dialect", "tensors"),
    [
        (
            "torchao",
            {
                "a._weight_qdata": ("I8", (32, 64)),
                "a._weight_scale": ("F32", (32, 1)),
                "a._weight_zero_point": ("I8", (32, 1)),
            },
        ),
        (
            "bitsandbytes",
            {
                "a.weight": ("I8", (32, 64)),
                "a.SCB": ("F32", (32,)),
                "a.weight_format": ("U8", ()),
            },
        ),
        (
            "quanto",
            {"a.weight._data": ("I8", (32, 64)), "a.weight._scale": ("F16", (32, 1))},
        ),
    ],
)
def test_parameters_of_what_is_stored(dialect: str, tensors: dict[str, Any]) -> None:
    found = stored(dialect, tensors)
    assert found.parameters == 32 * 64
    assert found.codes == 32 * 64
    assert found.kept == 0


COUNTS: dict[str, tuple[int, int]] = {
    "bitsandbytes-odd-blocks": (2 * 31 * 63, 4 * 63 + 63 + 16 * 63),
    "bitsandbytes-double-quant": (2 * 32 * 64, 2 * 16 * 64 + 64),
    "torchao-by-names": (3 * 32 * 64, 2 * 16 * 64 + 64),
    "torchao-experts": (4 * 32 * 64 + 4 * 64 * 16, 2 * 16 * 64 + 64),
    "hqq-tags": (32 * 64 + 64 * 32, 32 * 64 + 2 * 16 * 64 + 64),
    "quanto-rows-are-blocks": (32 * 192 + 32 * 64, 2 * 16 * 64 + 64),
    "quark-uint4": (2 * 32 * 64, 2 * 16 * 64 + 64),
    "quark-fp4": (32 * 64 + 64 * 32, 2 * 16 * 64 + 64),
    "exl2-mixed-bits": (2 * 32 * 64, 16 * 64 + 64),
    "exl3-half-a-bit": (32 * 64 + 16 * 64, 16 * 64 + 64),
}
"""Parameters of quantized weights and of other tensors, by the case."""


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_of_whole_checkpoints(name: str, tmp_path: Path) -> None:
    case = cases.load("valid")[name]
    case.build(tmp_path)
    ((part, store),) = case.open(tmp_path).found()
    shapes = logical_shapes(part, store)
    found = stored_sizes(store.index, part, shapes)
    quantized, others = COUNTS[name]
    assert found.quantized_parameters == quantized
    assert found.parameters == quantized + others
