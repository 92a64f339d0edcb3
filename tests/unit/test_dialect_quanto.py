"""`quanto`: the map and transformers' block, types, blocks, and zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named, recognize
from qmanifest.dialects.quanto.schemes import kind_as_stored, scheme_of
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine, Integer, Opaque, Scaled
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
BLOCK: Final[Config] = {"quant_method": "quanto", "weights": "int8"}


def of(**kinds: str) -> Config:
    return {module: {"weights": kind} for module, kind in kinds.items()}


def octets(dtype: str = "I8", shape: Shape = (32, 64)) -> TensorIndex:
    return index_of(
        {"a.weight._data": (dtype, shape), "a.weight._scale": ("F16", (32, 1))}
    )


def blocks(words: Shape = (16, 128), shift: str = "F16") -> TensorIndex:
    return index_of(
        {
            "a.weight._data._data": ("U8", words),
            "a.weight._scale": ("F16", (32, 1)),
            "a.weight._shift": (shift, (32, 1)),
        }
    )


def scheme(config: Config, index: TensorIndex) -> Scheme:
    (weight,) = component("quanto", config, index).weights
    return weight.scheme


@pytest.mark.parametrize(
    ("raw", "known"),
    [
        (of(a="qint8"), True),
        ({"quantization_config": BLOCK}, True),
        ({}, False),
        ({"a": {"bits": 4}}, False),
        ({"a": {"weights": "qint8"}, "b": 1}, False),
    ],
)
def test_a_file_is_a_map_or_has_the_block(raw: Config, *, known: bool) -> None:
    assert (dialect_named("quanto") in recognize(raw)) is known


@pytest.mark.parametrize(
    ("kind", "dtype", "element"),
    [
        ("qint8", "I8", "i8"),
        ("qfloat8", "F8_E4M3", "e4m3"),
        ("qfloat8_e4m3fn", "F8_E4M3", "e4m3"),
        ("qfloat8_e5m2", "F8_E5M2", "e5m2"),
    ],
)
def test_types_of_a_byte(kind: str, dtype: str, element: str) -> None:
    found = scheme(of(a=kind), octets(dtype))
    assert isinstance(found, Scaled)
    assert (found.element, found.spread) == (element, Spread(1, 0))


@pytest.mark.parametrize(("bits", "words"), [(4, (16, 128)), (2, (8, 128))])
def test_a_block_is_as_wide_as_the_table(bits: int, words: Shape) -> None:
    found = scheme(of(a=f"qint{bits}"), blocks(words))
    assert isinstance(found, Integer)
    assert found.spread == Spread(0, 128, "flat-column")
    assert found.zero.kind == "shift"
    parts = {role: shape for role, _, shape in found.parts((16, 256))}
    assert parts["codes"] == words
    assert parts["scales"] == (32, 1)


def test_a_shift_of_whole_numbers_is_a_code() -> None:
    found = scheme(of(a="qint4"), blocks(shift="I8"))
    assert isinstance(found, Integer)
    assert (found.zero.kind, found.zero.dtypes) == ("code", ("I8",))


def test_weights_of_convolutions_are_not_decoded() -> None:
    assert isinstance(scheme(of(a="qint8"), octets(shape=(32, 4, 3, 3))), Opaque)


def test_the_block_has_one_type_and_int8_is_the_default() -> None:
    for config in (BLOCK, {"quant_method": "quanto"}):
        found = component("quanto", config, octets())
        assert [each.scheme for each in found.weights] == [
            scheme_of("qint8", None, None)
        ]
        assert found.every_linear


def test_the_map_promises_what_is_not_stored() -> None:
    index = index_of({"a.weight": ("F16", (32, 64))})
    found = component("quanto", of(a="qint8", b="qint4", norm="none"), index)
    assert {each.name: each.codes for each in found.weights} == {
        "a.weight": "a.weight._data",
        "b.weight": "b.weight._data._data",
    }
    assert not found.every_linear


def test_a_map_names_its_weights_without_tensors() -> None:
    found = component("quanto", of(a="qint8", norm="none"))
    assert [each.name for each in found.weights] == ["a.weight"]


@pytest.mark.parametrize(
    ("kind", "index", "stored"),
    [
        ("qfloat8", octets("I8"), "qint8"),
        ("qint4", octets("I8"), "qint8"),
        ("qint8", blocks(), "qint4"),
    ],
)
def test_a_type_that_is_not_stored_is_a_contradiction(
    kind: str, index: TensorIndex, stored: str
) -> None:
    lowered = lower("quanto", of(a=kind), index)
    (defect,) = of_kind(lowered, DefectKind.CONTRADICTION)
    assert defect.problem.expected == kind
    ((weight,),) = (each.weights for each in lowered.manifest.components)
    codes = index[weight.codes]
    assert weight.scheme == scheme_of(stored, codes, None)


def test_types_of_nobody() -> None:
    for config in (of(a="qint3"), {"quant_method": "quanto", "weights": "int3"}):
        (defect,) = lower("quanto", config).defects
        assert defect.kind is DefectKind.INVALID_VALUE
    assert kind_as_stored("qint3", "I8") == "qint8"


def test_emit_writes_what_was_read() -> None:
    config = of(a="qint4")
    lowered = lower("quanto", config, blocks())
    again = emit_again("quanto", lowered)
    assert again == {"a": {"weights": "qint4", "activations": "none"}}
    weights = lower("quanto", again, blocks()).manifest.components[0].weights
    assert weights == lowered.manifest.components[0].weights
    affine = Weight("a.weight", Affine(4, 64, ("F16",), "u32-lsb"), "")
    with pytest.raises(EmitError, match="no words"):
        dialect_named("quanto").emit(
            Manifest("quanto", None, (Component("", (affine,)),))
        )
    with pytest.raises(EmitError, match="one model"):
        dialect_named("quanto").emit(Manifest("quanto"))
