"""Stacks of experts under the name of their module, and lines that were not kept."""

from __future__ import annotations

import pytest
from support.lowering import index_of

from qmanifest.dialects.lowering.promised import module_pattern, with_promised
from qmanifest.dialects.lowering.stacks import with_stacks
from qmanifest.manifest import Component, Entry, Kept, Weight
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes import Affine

Q4 = Affine(4, 64, ("F16",), "u32-lsb")
STACKS = ("l.0.experts.up", "l.0.experts.down", "l.1.experts.up")


def entry(*matches: str, pointer: str = "/0") -> Entry:
    return Entry(pointer, Pattern("x", Syntax.EXACT), "quantize", matches)


def test_a_module_of_stacks_is_one_more_name() -> None:
    stacks = with_stacks((*STACKS, "l.0.experts.0.up.weight", "a.weight"))
    assert stacks.names[-2:] == ("l.0.experts.weight", "l.1.experts.weight")
    assert stacks.members["l.0.experts.weight"] == STACKS[:2]


def test_what_matches_it_are_its_stacks() -> None:
    stacks = with_stacks(STACKS)
    found = stacks.expanded(entry("a.weight", "l.0.experts.weight"))
    assert found.matches == ("a.weight", *STACKS[:2])
    untouched = entry("a.weight")
    assert stacks.expanded(untouched) is untouched


@pytest.mark.parametrize(
    "names", [("a.weight", "experts.up", "l.0.experts.weight"), (), ("x",)]
)
def test_other_names_are_left_alone(names: tuple[str, ...]) -> None:
    assert with_stacks(names).names == names


def test_a_tensor_of_the_same_name_comes_first() -> None:
    names = ("l.0.experts.up", "l.0.experts.weight")
    stacks = with_stacks(names)
    assert (stacks.names, stacks.members) == (names, {})


@pytest.mark.parametrize(
    ("module", "syntax"),
    [
        ("l.0.q", Syntax.EXACT),
        ("l.0", Syntax.PREFIX),
        ("l", Syntax.PREFIX),
        ("l.1", Syntax.EXACT),
        ("l.0.", Syntax.EXACT),
    ],
)
def test_a_line_names_a_layer_or_what_layers_lie_in(
    module: str, syntax: Syntax
) -> None:
    index = index_of({"l.0.q.weight": ("F16", (4, 64)), "l.10.q.bias": ("F16", (4,))})
    assert module_pattern(module, index).syntax is syntax
    assert module_pattern(module, None) == Pattern(module, Syntax.EXACT)


def test_promises_that_were_not_kept() -> None:
    matrix = ("F16", (4, 64))
    index = index_of(
        {
            **dict.fromkeys(("a.weight", "b.weight", "c.weight", "d.weight"), matrix),
            "e.weight": ("U8", (4, 32)),
            "f.weight": ("F16", (4,)),
        }
    )
    component = Component(
        "",
        (Weight("a.weight", Q4, ""),),
        (Kept("b.weight", "/keep/0", ("F16",)),),
        (
            entry("a.weight", "b.weight", "c.weight", "e.weight", "f.weight", "gone"),
            entry("d.weight", pointer="/1"),
            Entry("/2", Pattern("x", Syntax.EXACT), "keep", ("d.weight",)),
        ),
    )

    def make(name: str, said: Entry) -> Weight | None:
        return Weight(name, Q4, said.pointer) if said.pointer == "/0" else None

    found = with_promised(component, index, make)
    assert [(w.name, w.pointer) for w in found.weights] == [
        ("a.weight", ""),
        ("c.weight", "/0"),
    ]
    assert with_promised(component, None, make) is component
