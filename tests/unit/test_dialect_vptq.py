"""`vptq`: shapes by what the config says of a layer, alone or of several, and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import VPTQ
from qmanifest.findings import Severity
from qmanifest.manifest import Manifest
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
ID: Final = "vptq"
A: Final = "m.layers.a"
LAYER: Final[dict[str, Any]] = {
    "vector_lens": [-1, 8],
    "num_centroids": [-1, 64],
    "num_res_centroids": [-1, 4],
    "group_num": 2,
    "group_size": 48,
    "in_features": 96,
    "out_features": 30,
}
PLAIN: Final[Tensors] = {
    f"{A}.indices": ("I32", (2, 4, 12)),  # 48 indices of 6 + 2 bits
    f"{A}.centroids.weight": ("BF16", (2, 64 * 8)),
    f"{A}.res_centroids.weight": ("BF16", (2, 4 * 8)),
    f"{A}.weight_scale": ("BF16", (96,)),
    f"{A}.weight_bias": ("BF16", (96,)),
    f"{A}.perm": ("I16", (96,)),
}


def said(layer: dict[str, Any], name: str = A) -> dict[str, Any]:
    """Say what one layer is quantized with."""
    return {"quant_method": ID, "config_for_layers": {name: layer}}


def shapes(config: dict[str, Any], tensors: Tensors) -> dict[str, Shape | None]:
    """Give the promised shape of every part of the only weight."""
    (weight,) = component(ID, config, index_of(tensors)).weights
    shape = weight.scheme.logical(tensors[f"{A}.indices"][1])
    return {part.name: part.shape for part in weight.parts(shape)}


def test_where_it_lies() -> None:
    raw = {"quantization_config": {"quant_method": "vptq"}}
    assert dialect_named(ID).locate(raw) == (("quantization_config",),)
    assert dialect_named(ID).locate({"quantization_config": {"bits": 2}}) == ()


def test_shapes_follow_from_the_numbers() -> None:
    found = component(ID, said(LAYER), index_of(PLAIN))
    (weight,) = found.weights
    assert (weight.name, weight.names) == (f"{A}.weight", VPTQ.names)
    assert weight.pointer == f"/config_for_layers/{A}"
    assert weight.scheme.logical((2, 4, 12)) == (30, 96)
    expected = {name: shape for name, (_, shape) in PLAIN.items()}
    assert shapes(said(LAYER), PLAIN) == expected
    assert found.every_linear


def test_outliers_have_a_table_of_their_own() -> None:
    layer = LAYER | {
        "vector_lens": [4, 8],
        "num_centroids": [16, 64],
        "num_res_centroids": [-1, -1],
        "outlier_size": 5,
        "enable_norm": False,
        "enable_perm": False,
    }
    found = shapes(said(layer), PLAIN)
    assert found == {
        f"{A}.indices": (2, 4, 9),  # 48 indices of 6 bits
        f"{A}.centroids.weight": (2, 64 * 8),
        f"{A}.outlier_indices": (1, 8, 5),
        f"{A}.outlier_centroids.weight": (1, 16 * 4),
    }


def test_indices_that_are_not_packed() -> None:
    layer = LAYER | {"is_indice_packed": False}
    found = shapes(said(layer), PLAIN)
    assert found[f"{A}.indices"] == found[f"{A}.res_indices"] == (2, 4, 48)


def test_the_shape_shows_where_it_is_not_said() -> None:
    layer = LAYER | {"in_features": -1, "out_features": -1}
    (weight,) = component(ID, said(layer), index_of(PLAIN)).weights
    assert weight.scheme.logical((2, 4, 12)) == (32, 96)  # 4 vectors of 8 outputs
    bare = {k: v for k, v in PLAIN.items() if not k.endswith(("scale", "perm"))}
    (weight,) = component(ID, said(layer), index_of(bare)).weights
    assert weight.scheme.logical((2, 4, 12)) is None


def test_one_config_for_several_layers() -> None:
    config = {"quant_method": ID, "shared_layer_config": {"layers": LAYER}}
    (weight,) = component(ID, config, index_of(PLAIN)).weights
    assert (weight.pointer, weight.scheme.logical((2, 4, 12))) == ("", (30, 96))


@pytest.mark.parametrize(
    "config", [{"quant_method": ID}, said({}), said(LAYER | {"group_size": -1})]
)
def test_what_is_not_said_is_not_promised(config: dict[str, Any]) -> None:
    assert shapes(config, PLAIN)[f"{A}.indices"] is None


def test_layers_that_are_not_there_are_news() -> None:
    found = component(ID, said(LAYER, "m.b"), index_of(PLAIN))
    assert [entry.unused for entry in found.entries] == [Severity.WARNING]


@pytest.mark.parametrize(
    "config",
    [
        said(LAYER | {"vector_lens": [8]}),
        said(LAYER | {"group_num": "1"}),
        {"quant_method": ID, "enable_proxy_error": 0},
    ],
)
def test_values_that_cannot_be(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, config)


def test_sizes() -> None:
    index = index_of(PLAIN)
    found = component(ID, said(LAYER), index)
    there = stored_sizes(index, found)
    stored = sum(tensor.nbytes for tensor in index.values())
    known: Tensors = {f"{A}.weight": ("F16", (30, 96))}
    promised = sizes_of(Manifest(ID, components=(found,)), {"": known})
    assert promised.total == there.total - there.overhead == stored
    assert promised.parameters == there.parameters


def test_nothing_is_emitted() -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named(ID).emit(Manifest(ID, None, ()))
