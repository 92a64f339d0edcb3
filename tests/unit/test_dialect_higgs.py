"""`higgs`: shapes by what the config says, numbers that go together, and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, index_of, lower
from support.owners import owner

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import HIGGS
from qmanifest.findings import DefectKind
from qmanifest.manifest import Manifest
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
ID: Final = "higgs"
N, K = 64, 512


def layer(bits: int = 4, group: int = 256) -> Tensors:
    """Describe a weight of 64 x 512."""
    grid = 2**bits
    return {
        "a.weight": ("I16", (N * bits // 16, K)),
        "a.scales": ("F16", (N, K // group)),
        "a.tables": ("F16", (grid,)),
        "a.tables2": ("F16", (grid, grid, 2)),
    }


def said(bits: int = 4, group: int = 256) -> dict[str, Any]:
    """Say what `layer` has."""
    return {"quant_method": ID, "bits": bits, "group_size": group}


def test_where_it_lies() -> None:
    raw = {"quantization_config": {"quant_method": "higgs"}}
    assert dialect_named(ID).locate(raw) == (("quantization_config",),)
    assert dialect_named(ID).locate({"quantization_config": {"bits": 4}}) == ()


@pytest.mark.parametrize("group", [64, 256])
@pytest.mark.parametrize("bits", [2, 3, 4])
def test_shapes_follow_from_the_numbers(bits: int, group: int) -> None:
    tensors = layer(bits, group)
    found = component(ID, said(bits, group), index_of(tensors))
    (weight,) = found.weights
    assert (weight.name, weight.names) == ("a.weight", HIGGS.names)
    shape = weight.scheme.logical(tensors["a.weight"][1])
    assert shape == (N, K)
    parts = {part.name: part.shape for part in weight.parts(shape)}
    assert parts == {name: shape for name, (_, shape) in tensors.items()}
    assert found.every_linear


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_shapes_are_those_of_transformers(bits: int) -> None:
    module = owner("transformers.integrations.higgs").HiggsLinear(
        K, N, bits, bias=False, device="meta", group_size=128
    )
    shapes = {f"a.{name}": tuple(p.shape) for name, p in module.state_dict().items()}
    assert shapes == {name: shape for name, (_, shape) in layer(bits, 128).items()}


def test_other_words_of_16_bits_are_not_declared() -> None:
    index = index_of({"a.weight": ("I16", (N, K)), "a.scales": ("F16", (N, 2))})
    assert component(ID, said(), index).weights == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"bits": 8},
        {"p": 3},
        {"group_size": 32},
        {"hadamard_size": 0},
    ],
)
def test_values_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, said() | wrong)


def test_whole_groups_are_rotated() -> None:
    (defect,) = lower(ID, said() | {"hadamard_size": 384}, index_of(layer())).defects
    assert defect.kind is DefectKind.IMPOSSIBLE_SCHEME
    assert defect.problem.at[0].pointer == "/hadamard_size"
    assert lower(ID, said() | {"hadamard_size": 768}).defects == ()


def test_sizes() -> None:
    index = index_of(layer())
    found = component(ID, said(), index)
    there = stored_sizes(index, found)
    known: Tensors = {"a.weight": ("F16", (N, K))}
    promised = sizes_of(Manifest(ID, components=(found,)), {"": known})
    stored = sum(tensor.nbytes for tensor in index.values())
    assert promised.total == there.total - there.overhead == stored
    assert promised.parameters == there.parameters


def test_nothing_is_emitted() -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(ID).emit(Manifest(ID, None, ()))
