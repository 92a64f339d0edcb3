"""What a rule is, apart from what any of them checks."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import pytest
from support import memory

from qmanifest.findings import Finding, Location, Problem, Severity
from qmanifest.manifest import Component, Weight
from qmanifest.rules.base import Depth, Rule, of_component, rule
from qmanifest.rules.parameters import parameters
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

AT = (Location("f", "/a"), Location("g", tensor="t"))


@rule("QM299", "two-things", Severity.ERROR, needs=Depth.HEADERS, absence=True)
def two_things(_: Checkpoint, /) -> Iterator[Problem]:
    """Two things are found.

    ## Why it matters
    They are two.
    """
    yield Problem("one", AT, 1, [2], "do that")
    yield Problem("two", AT, severity=Severity.NOTE)


def test_a_rule_judges_what_its_check_finds() -> None:
    assert list(two_things.run(memory.checkpoint({}))) == [
        Finding("QM299", Severity.ERROR, "one", "do that", AT, 1, [2]),
        Finding("QM299", Severity.NOTE, "two", None, AT),
    ]


def test_a_rule_s_docstring_is_its_page() -> None:
    assert two_things.summary == "Two things are found."
    assert two_things.page.endswith("## Why it matters\nThey are two.")
    assert two_things.family == "QM2"
    silent = Rule("QM298", "silent", Severity.NOTE, Depth.FILES, lambda _: ())
    assert silent.page == silent.summary == ""


def test_depths_include_those_before() -> None:
    assert list(Depth) == sorted(Depth)
    assert Depth.FILES < Depth.MANIFEST < Depth.HEADERS < Depth.DATA < Depth.REFERENCE


def test_components_are_named_where_they_have_a_name() -> None:
    assert of_component(Component("emb")) == " of 'emb'"
    assert of_component(Component("")) == ""


@pytest.mark.parametrize(
    ("scheme", "shape"),
    [
        (Affine(3, 32, ("F16",), "u32-lsb"), (4, 64)),
        (Affine(4, 64, ("F16",), "u8-nibbles"), (4, 64)),
        (ZeroPoint(4, 64, ("F16",), ("U8",), "u8-nibbles"), (4, 64)),
        (
            Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
            (3, 4, 32),
        ),
    ],
    ids=str,
)
def test_parameters_are_codes_and_what_is_not_packed(
    scheme: Scheme, shape: Shape
) -> None:
    weight = Weight("w.weight", scheme, "")
    tensors: dict[str, tuple[str, Shape]] = {"w.bias": ("F16", (4,))}
    for part in weight.parts(shape):
        assert part.shape is not None
        tensors[part.name] = part.dtypes[0], part.shape
    found = parameters(Component("", (weight,)), memory.store(tensors))
    assert found == prod(shape) + 4


def test_parameters_of_a_weight_that_was_left_alone() -> None:
    component = Component(
        "", (Weight("w.weight", Affine(4, 64, ("F16",), "u32-lsb"), ""),)
    )
    dense = memory.store({"w.weight": ("F16", (4, 64)), "w.scales": ("F16", (4, 1))})
    assert parameters(component, dense) == 256
