"""`spqr`: lengths by what the config says, lists of parameters, and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import SPQR
from qmanifest.manifest import Manifest
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
ID: Final = "spqr"
LAYER: Final[Tensors] = {
    "a.dense_weights": ("I64", (2 * 16 * 4,)),  # 2 x 4 tiles
    "a.row_offsets": ("I32", (33,)),
    "a.col_vals": ("I32", (7,)),
    "a.in_perm": ("I32", (32,)),
}
SAID: Final[dict[str, Any]] = {
    "quant_method": ID,
    "shapes": {f"{name}.shape": shape[0] for name, (_, shape) in LAYER.items()},
}
WORDS: Final = LAYER["a.dense_weights"][1]


def test_where_it_lies() -> None:
    raw = {"quantization_config": {"quant_method": "SpQR"}}
    assert dialect_named(ID).locate(raw) == (("quantization_config",),)
    assert dialect_named(ID).locate({"quantization_config": {"bits": 3}}) == ()


def test_lengths_are_those_of_the_config() -> None:
    found = component(ID, SAID, index_of(LAYER))
    (weight,) = found.weights
    assert (weight.name, weight.names) == ("a.weight", SPQR.names)
    shape = weight.scheme.logical(WORDS)
    assert shape == (32, 64)
    parts = {part.name: (part.dtypes[0], part.shape) for part in weight.parts(shape)}
    assert parts == LAYER
    assert found.every_linear


@pytest.mark.parametrize(
    ("config", "order"),
    [({"quant_method": ID}, (32,)), (SAID, (0,)), (SAID, (4, 8))],
)
def test_what_nothing_tells_is_not_promised(
    config: dict[str, Any], order: Shape
) -> None:
    index = index_of(LAYER | {"a.in_perm": ("I32", order)})
    (weight,) = component(ID, config, index).weights
    shape = weight.scheme.logical(WORDS)
    assert shape == ((32, 64) if order == (32,) else None)
    assert all(part.shape is None for part in weight.parts(shape))


@pytest.mark.parametrize("text", ["lm_head.weight", "lm_head", "head"])
def test_lists_name_parameters_or_modules(text: str) -> None:
    config = SAID | {"modules_to_not_convert": [text]}
    index = index_of(LAYER | {"lm_head.weight": ("F16", (4, 64))})
    (kept,) = component(ID, config, index).kept
    assert kept.name == "lm_head.weight"


@pytest.mark.parametrize(
    "said", [{"bits": 4}, {"beta1": 8}, {"beta2": 32}, {"shapes": {"a": -1}}]
)
def test_values_that_cannot_be(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, SAID | said)


def test_sizes() -> None:
    index = index_of(LAYER)
    found = component(ID, SAID, index)
    there = stored_sizes(index, found)
    known: Tensors = {"a.weight": ("F16", (32, 64))}
    promised = sizes_of(Manifest(ID, components=(found,)), {"": known})
    stored = sum(tensor.nbytes for tensor in index.values())
    assert promised.total == there.total - there.overhead == stored
    assert promised.parameters == there.parameters


def test_nothing_is_emitted() -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(ID).emit(Manifest(ID, None, ()))
