"""`metal`: MLX's layout with `.qbiases`, lists as transformers reads them, sizes."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pytest
from support.lowering import component, emit_again, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import METAL
from qmanifest.findings import Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling
from qmanifest.sizes import sizes_of, stored_sizes
from qmanifest.tensors import Shape

Tensors: TypeAlias = dict[str, tuple[str, Shape]]
ID: Final = "metal"
SAID: Final[dict[str, Any]] = {"quant_method": ID}


def stored(stem: str = "a", bits: int = 4, group: int = 64) -> Tensors:
    """Describe a weight of 8 x 128 with its scales and biases."""
    scales = ("BF16", (8, 128 // group))
    return {
        f"{stem}.weight": ("U32", (8, 128 * bits // 32)),
        f"{stem}.scales": scales,
        f"{stem}.qbiases": scales,
        f"{stem}.bias": ("BF16", (8,)),
    }


@pytest.mark.parametrize(("method", "count"), [("metal", 1), ("METAL", 1), ("mlx", 0)])
def test_where_it_lies(method: str, count: int) -> None:
    raw = {"quantization_config": {"quant_method": method, "bits": 4}}
    assert len(dialect_named(ID).locate(raw)) == count


@pytest.mark.parametrize(
    ("said", "bits", "group"),
    [
        ({}, 4, 64),
        ({"bits": 8}, 8, 64),
        ({"bits": 2, "group_size": 32}, 2, 32),
        ({"group_size": 128}, 4, 128),
    ],
)
def test_numbers(said: dict[str, int], bits: int, group: int) -> None:
    index = index_of(stored(bits=bits, group=group))
    found = component(ID, {**SAID, **said}, index)
    (weight,) = found.weights
    assert (weight.scheme.bits, weight.scheme.group_size) == (bits, group)
    assert [part.name for part in weight.parts()] == [
        "a.weight",
        "a.scales",
        "a.qbiases",
    ]
    assert found.every_linear


@pytest.mark.parametrize("lost", ["scales", "qbiases"])
def test_codes_that_lost_a_part_are_still_promised_it(lost: str) -> None:
    tensors = stored()
    del tensors[f"a.{lost}"]
    (weight,) = component(ID, SAID, index_of(tensors)).weights
    assert weight.names is METAL.names


def test_words_of_another_dtype_are_not_its() -> None:
    tensors = stored() | {"a.weight": ("I32", (8, 16))}
    assert component(ID, SAID, index_of(tensors)).weights == ()


@pytest.mark.parametrize(
    ("text", "kept"),
    [("lm_head", ["lm_head.weight"]), ("head", ["lm_head.weight"]), ("lm", [])],
)
def test_lists(text: str, kept: list[str]) -> None:
    said = {**SAID, "modules_to_not_convert": [text]}
    tensors = stored() | {"lm_head.weight": ("BF16", (8, 128))}
    found = component(ID, said, index_of(tensors))
    assert [each.name for each in found.kept] == kept
    (entry,) = found.entries
    assert (entry.reader, entry.unused) == ("transformers", Severity.NOTE)


@pytest.mark.parametrize(
    "said", [{"bits": 3}, {"bits": "4"}, {"group_size": 0}, {"group_size": -1}]
)
def test_what_transformers_refuses(said: dict[str, object]) -> None:
    with pytest.raises(InvalidConfigError):
        lower(ID, {**SAID, **said})


def test_unknown_keys() -> None:
    near, far = lower(ID, {**SAID, "group_sizes": 64, "x": 1}).defects
    assert near.problem.severity is Severity.WARNING
    assert far.problem.severity is Severity.NOTE


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_sizes(bits: int) -> None:
    index = index_of(stored(bits=bits))
    found = component(ID, {**SAID, "bits": bits}, index)
    there = stored_sizes(index, found)
    nbytes = 8 * 128 * bits // 8 + 2 * 2 * 8 * 2
    assert there.total - there.overhead - there.kept == nbytes
    assert there.quantized_parameters == 8 * 128
    known = {"": {"a.weight": ("BF16", (8, 128))}}
    promised = sizes_of(Manifest(ID, components=(found,)), known)
    assert (promised.total, promised.parameters) == (nbytes, 8 * 128)


def test_written_again() -> None:
    said = {**SAID, "bits": 8, "group_size": 32, "modules_to_not_convert": ["lm_head"]}
    index = index_of(stored(bits=8, group=32) | {"lm_head.weight": ("BF16", (8, 128))})
    assert emit_again(ID, lower(ID, said, index)) == said


@pytest.mark.parametrize(
    "schemes",
    [
        (),
        (Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),),
        (Affine(3, 64, ("F16",), "u32-lsb"),),
        (Affine(4, 64, ("F16",), "u8-nibbles"),),
        (Affine(4, 64, ("F16",), "u32-lsb"), Affine(8, 64, ("F16",), "u32-lsb")),
    ],
)
def test_what_it_has_no_words_for(schemes: tuple[Affine | Microscaling, ...]) -> None:
    weights = tuple(Weight(f"{at}.weight", s, "") for at, s in enumerate(schemes))
    emit = dialect_named(ID).emit
    with pytest.raises(EmitError):
        emit(Manifest(ID, components=(Component("", weights),)))
    with pytest.raises(EmitError):
        emit(Manifest(ID))
