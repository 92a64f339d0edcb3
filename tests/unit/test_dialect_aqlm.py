"""`aqlm`: shapes by what the config says, lists of parameters, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import AQLM
from qmanifest.findings import Severity
from qmanifest.manifest import Manifest
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
ID: Final = "aqlm"
SAID: Final[dict[str, Any]] = {
    "quant_method": ID,
    "in_group_size": 8,
    "out_group_size": 2,
    "num_codebooks": 3,
    "nbits_per_codebook": 5,
}


def layer(stem: str = "a", dtype: str = "I8") -> Tensors:
    """Describe a weight of 32 x 64 as `SAID` says."""
    return {
        f"{stem}.codes": (dtype, (16, 8, 3)),
        f"{stem}.codebooks": ("F16", (3, 32, 2, 8)),
        f"{stem}.scales": ("F16", (16, 1, 1, 1)),
        f"{stem}.bias": ("F16", (32,)),
    }


def test_where_it_lies() -> None:
    raw = {"quantization_config": {"quant_method": "AQLM"}}
    assert dialect_named(ID).locate(raw) == (("quantization_config",),)
    assert dialect_named(ID).locate({"quantization_config": {"bits": 2}}) == ()


def test_shapes_follow_from_the_numbers() -> None:
    index = index_of(layer() | {"head.weight": ("F16", (4, 64))})
    found = component(ID, SAID, index)
    (weight,) = found.weights
    assert (weight.name, weight.names) == ("a.weight", AQLM.names)
    shape = weight.scheme.logical((16, 8, 3))
    assert shape == (32, 64)
    stored = {part.name: part for part in weight.parts(shape)}
    assert {name: part.shape for name, part in stored.items()} == {
        name: index[name].shape for name in stored
    }
    assert all(index[name].dtype in part.dtypes for name, part in stored.items())
    assert found.every_linear


def test_a_codebook_has_its_shape_whatever_the_weight_s_is() -> None:
    (weight,) = component(ID, SAID, index_of(layer())).weights
    shapes = [part.shape for part in weight.parts()]
    assert shapes == [None, None, (3, 32, 2, 8)]


@pytest.mark.parametrize(
    ("bits", "dtype"), [(1, "I8"), (8, "I8"), (9, "I16"), (16, "I16"), (17, "I32")]
)
def test_a_code_has_the_narrowest_integer(bits: int, dtype: str) -> None:
    config = SAID | {"nbits_per_codebook": bits}
    (weight,) = component(ID, config, index_of(layer(dtype=dtype))).weights
    codes, *_ = weight.parts()
    assert codes.dtypes == (dtype,)


@pytest.mark.parametrize(
    ("said", "bits"),
    [({}, 0), ({"num_codebooks": 16}, 5), ({"num_codebooks": 2}, 0)],
)
def test_whole_bits_of_a_weight_are_named(said: dict[str, int], bits: int) -> None:
    (weight,) = component(ID, SAID | said, index_of(layer())).weights
    assert weight.scheme.bits == bits


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("lm_head.weight", ["lm_head.weight"]),
        ("lm_head", ["lm_head.weight"]),  # as transformers 5 would read it
        ("head.weight", []),  # a name, and no end of one
        ("a.bias", ["a.bias"]),
    ],
)
def test_lists_name_parameters(text: str, kept: list[str]) -> None:
    config = SAID | {"linear_weights_not_to_quantize": [text]}
    index = index_of(layer() | {"lm_head.weight": ("F16", (4, 64))})
    found = component(ID, config, index)
    assert [each.name for each in found.kept] == kept
    assert found.entries[0].unused in {Severity.NOTE, None}


@pytest.mark.parametrize(
    "said",
    [
        {"in_group_size": 0},
        {"num_codebooks": -1},
        {"nbits_per_codebook": 65},
        {"nbits_per_codebook": True},
        {"linear_weights_not_to_quantize": "lm_head"},
    ],
)
def test_values_that_cannot_be(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, SAID | said)


def test_sizes() -> None:
    index = index_of(layer())
    found = component(ID, SAID, index)
    there = stored_sizes(index, found)
    stored = sum(tensor.nbytes for tensor in index.values())
    known: Tensors = {"a.weight": ("F16", (32, 64)), "a.bias": ("F16", (32,))}
    promised = sizes_of(Manifest(ID, components=(found,)), {"": known})
    assert promised.total == there.total - there.overhead == stored
    assert promised.parameters == there.parameters


def test_nothing_is_emitted() -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(ID).emit(Manifest(ID, None, ()))
