"""Torch with weights that do not come row by row: as the reference has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.formats import FORMATS, Format
from support.golden import golden

from qmanifest.backends import reference
from qmanifest.errors import BackendError
from qmanifest.packings.arrays import Stored
from qmanifest.schemes import Dim, Integer, Opaque, OpaquePart

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")

from qmanifest.backends import pytorch
from qmanifest.backends.pytorch.rebuilding import rebuild
from qmanifest.backends.pytorch.scheme_line import parse_line, write_line
from qmanifest.backends.pytorch.whole import stored_of

each_format = pytest.mark.parametrize("row", FORMATS[::5], ids=lambda row: row.file)


def stored(row: Format) -> dict[str, Stored]:
    vectors = golden(row.file)
    return {role: vectors[key] for role, key in {**row.parts, **row.extra}.items()}


def weight_of(row: Format) -> pytorch.QuantizedWeight:
    return pytorch.weight_from_parts(row.scheme, row.shape, stored(row))


@each_format
def test_weight_is_that_of_the_reference(row: Format) -> None:
    expected = torch.from_numpy(
        reference.dequantize(row.scheme, stored(row), row.shape)
    )
    weight = weight_of(row)
    assert torch.equal(pytorch.dequantize(weight).float(), expected)
    half = pytorch.dequantize(weight, torch.float16)
    assert torch.equal(half, expected.to(torch.float16))


@each_format
def test_parts_come_back_as_they_are_stored(row: Format) -> None:
    weight = weight_of(row)
    promised = {role: dtypes for role, dtypes, _ in row.scheme.parts(None)}
    for role, part in stored(row).items():
        back = stored_of(weight.parts[role], promised[role])
        assert (back.dtype, back.shape) == (part.dtype, part.shape)
        assert back.array.tobytes() == part.array.tobytes()


@pytest.mark.parametrize(
    "row",
    [row for row in FORMATS if len(row.shape) == 2][::5],
    ids=lambda row: row.file,
)
def test_products_and_layers(row: Format) -> None:
    weight, (rows, width) = weight_of(row), row.shape
    dense = pytorch.dequantize(weight, torch.float32)
    x = torch.randn(3, width, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    product = pytorch.quantized_matmul(x, weight)
    torch.testing.assert_close(product, x @ dense.T)
    (gradient,) = torch.autograd.grad(product.sum(), x)
    torch.testing.assert_close(gradient, torch.ones(3, rows) @ dense)
    wide = pytorch.quantized_matmul(x.double(), weight)
    torch.testing.assert_close(wide, x.double() @ dense.double().T)

    assert torch.equal(pytorch.QuantizedLinear(weight)(x), product)
    embedding = pytorch.QuantizedEmbedding(weight)
    indices = torch.tensor([[0, rows - 1], [1, 1]])
    assert torch.equal(embedding(indices).float(), dense[indices])
    with pytest.raises(IndexError):
        embedding(torch.tensor([rows]))


@each_format
def test_lines_lose_nothing(row: Format) -> None:
    roles = tuple(row.parts)
    line = write_line(row.scheme, roles)
    assert parse_line(line) == (row.scheme, roles)


@pytest.mark.parametrize("line", ["[]", "[", '[{"kind":"affine"},["codes"]]', "[1,2]"])
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(BackendError, match="no scheme is written"):
        parse_line(line)


def test_absent_group_list_is_none_to_the_operator() -> None:
    row = FORMATS[0]
    parts = {role: part for role, part in stored(row).items() if role != "g_idx"}
    weight = pytorch.weight_from_parts(row.scheme, row.shape, parts)
    x = torch.eye(row.shape[1])
    product = pytorch.quantized_matmul(x, weight)
    assert torch.equal(product.T, pytorch.dequantize(weight))


def test_layers_are_compiled_whole_each_with_its_scheme() -> None:
    row = FORMATS[0]
    scheme = row.scheme
    assert isinstance(scheme, Integer)
    other = replace(scheme, zero=replace(scheme.zero, plus=0))
    layers = [
        pytorch.QuantizedLinear(pytorch.weight_from_parts(each, row.shape, stored(row)))
        for each in (scheme, other)
    ]
    x = torch.randn(3, row.shape[1], generator=torch.Generator().manual_seed(0))
    assert not torch.equal(layers[0](x), layers[1](x))

    def call(layer: pytorch.QuantizedLinear, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = layer(x)
        return product

    compiled = torch.compile(call, backend="eager", fullgraph=True)
    for layer in layers:
        assert torch.equal(compiled(layer, x), layer(x))
        exported = torch.export.export(layer, (x,))
        assert torch.equal(exported.module()(x), layer(x))


def test_operator_keeps_torch_rules() -> None:
    row = FORMATS[0]  # torch's check cannot take parts of 8-bit floats
    weight = weight_of(row)
    x = torch.ones(2, row.shape[1], requires_grad=True)
    line = write_line(row.scheme, tuple(weight.parts))
    torch.library.opcheck(
        torch.ops.qmanifest.product.default,
        (x, list(weight.parts.values()), line, list(row.shape), False),
    )


def test_rows_are_not_rebuilt_alone() -> None:
    weight = weight_of(FORMATS[0])
    with pytest.raises(BackendError, match="not rebuilt by themselves"):
        rebuild(weight.scheme, weight.parts, 128)


def test_a_part_of_another_dtype() -> None:
    with pytest.raises(BackendError, match="is none of I32"):
        stored_of(torch.zeros(2, dtype=torch.int64), ("I32",))


def test_opaque_weights_are_refused() -> None:
    scheme = Opaque(
        "exl3", 3, 0, (OpaquePart("codes", ("I16",), (Dim("N"), Dim("K"))),)
    )
    parts = {"codes": Stored("I16", np.zeros((4, 4), np.int16))}
    with pytest.raises(BackendError, match="not decoded"):
        pytorch.weight_from_parts(scheme, (4, 4), parts)
