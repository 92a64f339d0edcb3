"""`bitnet`: shapes as transformers' layer has them, modes, and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, index_of, lower
from support.owners import owner

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import SCALED
from qmanifest.manifest import Manifest
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
ID: Final = "bitnet"
SAID: Final[dict[str, Any]] = {"quant_method": ID}
N, K = 32, 64
LAYER: Final[Tensors] = {
    "a.weight": ("U8", (N // 4, K)),
    "a.weight_scale": ("BF16", (1,)),
}


def test_where_it_lies() -> None:
    raw = {"quantization_config": {"quant_method": "bitnet"}}
    assert dialect_named(ID).locate(raw) == (("quantization_config",),)
    assert dialect_named(ID).locate({"quantization_config": {"bits": 2}}) == ()


def test_shapes() -> None:
    found = component(ID, SAID, index_of(LAYER))
    (weight,) = found.weights
    assert (weight.name, weight.names) == ("a.weight", SCALED.names)
    shape = weight.scheme.logical((N // 4, K))
    assert shape == (N, K)
    parts = {part.name: part.shape for part in weight.parts(shape)}
    assert parts == {name: shape for name, (_, shape) in LAYER.items()}


def test_shapes_are_those_of_transformers() -> None:
    module = owner("transformers.integrations.bitnet").BitLinear(K, N, bias=False)
    shapes = {f"a.{name}": tuple(p.shape) for name, p in module.state_dict().items()}
    assert shapes == {name: shape for name, (_, shape) in LAYER.items()}
    assert str(module.weight.dtype) == "torch.uint8"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, True),
        ({"linear_class": "autobitlinear"}, True),
        ({"quantization_mode": "online"}, True),  # which `bitlinear` does not have
        ({"linear_class": "autobitlinear", "quantization_mode": "online"}, False),
    ],
)
def test_nothing_is_promised_of_weights_that_are_rounded_later(
    said: dict[str, str], *, expected: bool
) -> None:
    components = lower(ID, SAID | said, index_of(LAYER)).manifest.components
    assert [each.every_linear for each in components] == ([True] if expected else [])


@pytest.mark.parametrize(
    "wrong",
    [{"linear_class": "linear"}, {"quantization_mode": ""}, {"use_rms_norm": 1}],
)
def test_values_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, SAID | wrong)


def test_sizes() -> None:
    index = index_of(LAYER)
    found = component(ID, SAID, index)
    there = stored_sizes(index, found)
    known: Tensors = {"a.weight": ("F16", (N, K))}
    promised = sizes_of(Manifest(ID, components=(found,)), {"": known})
    assert there.total - there.overhead == N * K // 4 + 2
    assert promised.parameters == there.parameters == N * K


def test_nothing_is_emitted() -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(ID).emit(Manifest(ID, None, ()))
