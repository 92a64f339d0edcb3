"""A weight that is not doubted is one of which no rule has anything to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import memory

from qmanifest.manifest import Kept, Weight
from qmanifest.rules import RULES
from qmanifest.rules import doubtful as doubtful_module
from qmanifest.rules.base import Depth
from qmanifest.rules.doubtful import doubtful, doubts
from qmanifest.rules.layout import not_provable
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint

if TYPE_CHECKING:
    from qmanifest.checkpoint import Checkpoint
    from qmanifest.findings import Finding
    from qmanifest.tensors import Shape

LAYER = "model.layers.3"
NAMES = (
    f"{LAYER}.mlp.up_proj.weight",
    f"{LAYER}.mlp.experts.7.down_proj.weight",
    f"{LAYER}.self_attn.o_proj.weight",
    "lm_head.weight",
    "vision.0.mlp.up_proj.weight",
    "strange.weight",
    "bare",
)
MODEL = {"hidden_size": 128, "moe_intermediate_size": 64, "num_attention_heads": 2}
SCHEMES: tuple[Scheme, ...] = (
    Affine(4, 64, ("F16", "BF16"), "u32-lsb"),
    Affine(4, 64, ("F16",), "u8-nibbles"),
    Affine(2, 128, ("F16",), "u32-lsb"),
    Affine(7, 32, ("F16",), "u32-lsb"),
    Affine(4, 48, ("F16",), "u32-lsb"),
    Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
    ZeroPoint(4, 64, ("F16",), ("U8",), "u8-nibbles"),
)
SHAPES: tuple[Shape, ...] = (
    (4, 128),
    (4, 64),
    (3, 4, 128),
    (4, 96),
    (128,),
    (0, 128),
    (),
)


def judged(checkpoint: Checkpoint) -> list[Finding]:
    """Run every rule that reads headers alone."""
    rules = [each for each in RULES if each.needs <= Depth.HEADERS]
    return [finding for each in rules for finding in each.run(checkpoint)]


@dataclass(frozen=True)
class Made:
    """What a checkpoint of some weights is made of, so that it can be made twice."""

    tensors: dict[str, tuple[str, Shape]]
    weights: list[Weight]
    kept: list[Kept]
    model: dict[str, int]

    def checkpoint(self) -> Checkpoint:
        """Make a checkpoint of its own, of which nothing is known yet."""
        return memory.checkpoint(
            self.tensors, self.weights, self.kept, model_config=self.model
        )


@st.composite
def made(draw: st.DrawFn) -> Made:
    """Promise up to three weights, and store them with up to two faults each."""
    tensors: dict[str, tuple[str, Shape]] = {}
    weights, kept = [], []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        own, weight = draw(stored_weight(name))
        tensors |= own
        if draw(st.integers(0, 5)):
            weights.append(weight)
        elif draw(st.booleans()):
            kept.append(Kept(name, "/kept/0", ("F16",)))
    return Made(tensors, weights, kept, draw(st.sampled_from(({}, MODEL))))


@st.composite
def stored_weight(
    draw: st.DrawFn, name: str
) -> tuple[dict[str, tuple[str, Shape]], Weight]:
    """Store one weight with up to two faults, and promise it."""
    scheme = draw(st.sampled_from(SCHEMES))
    stored_as = draw(st.sampled_from((scheme, scheme, *SCHEMES)))
    shape = draw(st.sampled_from(SHAPES))
    declared = draw(st.sampled_from((None, shape, *SHAPES)))
    tensors: dict[str, tuple[str, Shape]] = {}
    for part in Weight(name, stored_as, "").parts(shape):
        size = (4, 2) if part.shape is None else part.shape
        tensors[part.name] = draw(st.sampled_from(part.dtypes)), size
    for _ in range(draw(st.integers(0, 2))):
        one = draw(st.sampled_from((*tensors, f"{name.removesuffix('.weight')}.zeros")))
        if draw(st.booleans()) and one in tensors and len(tensors) > 1:
            del tensors[one]
        else:
            dtype = draw(st.sampled_from(("F16", "BF16", "F32", "U32", "U8", "I32")))
            tensors[one] = dtype, draw(st.sampled_from(((4, 2), (4, 16), (4, 1), ())))
    return tensors, Weight(name, scheme, f"/tensors/{name}", declared)


@given(made=made())
def test_the_strict_rules_find_the_same_without_the_pass(made: Made) -> None:
    with patch.object(doubtful_module, "judge", return_value="doubtful"):
        strict = made.checkpoint()
        assert len(doubtful(strict)) == len(made.weights)
        found = judged(strict)
    assert judged(made.checkpoint()) == found


@given(made=made())
def test_of_a_fitting_weight_at_most_its_bits_are_unproven(made: Made) -> None:
    checkpoint = made.checkpoint()
    (each,) = doubts(checkpoint)
    if each.weights or each.others:
        return
    found = [f for f in judged(checkpoint) if f.code[:3] in {"QM2", "QM3"}]
    assert [f.code for f in found] == (["QM305"] if each.unproven else [])


def whole(name: str, scheme: Scheme, shape: Shape) -> dict[str, tuple[str, Shape]]:
    """Store a weight as promised."""
    parts = Weight(name, scheme, "").parts(shape)
    return {p.name: (p.dtypes[0], p.shape) for p in parts if p.shape is not None}


@pytest.mark.parametrize("scheme", [*SCHEMES[:3], *SCHEMES[5:7]], ids=str)
@pytest.mark.parametrize("declared", [None, (4, 128)], ids=["dimensions", "declared"])
def test_a_sound_weight_is_not_doubted(scheme: Scheme, declared: Shape | None) -> None:
    weight = Weight(NAMES[0], scheme, "", declared)
    tensors = whole(NAMES[0], scheme, (4, 128))
    assert not doubtful(memory.checkpoint(tensors, [weight], model_config=MODEL))


def test_numbers_in_names_do_not_matter() -> None:
    scheme = SCHEMES[0]
    names = [f"model.layers.{n}.mlp.experts.{n}.down_proj.weight" for n in (0, 17)]
    weights = [Weight(name, scheme, "") for name in names]
    sound, wrong = whole(names[0], scheme, (4, 64)), whole(names[1], scheme, (4, 128))
    checkpoint = memory.checkpoint(sound | wrong, weights, model_config=MODEL)
    assert [weight.name for _, _, weight in doubtful(checkpoint)] == names[1:]


def test_an_original_makes_all_doubtful() -> None:
    weight = Weight(NAMES[0], SCHEMES[0], "", (4, 128))
    tensors = whole(NAMES[0], SCHEMES[0], (4, 128))
    original = {NAMES[0]: ("F16", (4, 256))}
    assert doubtful(memory.checkpoint(tensors, [weight], original=original))


@pytest.mark.parametrize(
    ("scheme", "unproven"),
    [(SCHEMES[0], True), (Affine(8, 128, ("F16",), "u32-lsb"), False)],
)
def test_what_fits_without_a_witness_is_not_doubted(
    scheme: Affine,
    unproven: bool,  # noqa: FBT001 - a parameter
) -> None:
    weight = Weight(NAMES[0], scheme, "")
    (each,) = doubts(memory.checkpoint(whole(NAMES[0], scheme, (4, 128)), [weight]))
    assert (each.weights, each.others) == ((), ())
    assert each.unproven == ((weight,) if unproven else ())
    assert each.packings == {"u32-lsb"}


def test_unproven_weights_are_counted_with_the_doubtful_ones_that_are_too() -> None:
    """A weight of another module's name is read by its shapes alone, in its place."""
    scheme, names = SCHEMES[0], (NAMES[0], NAMES[5])
    weights = [Weight(name, scheme, f"/tensors/{name}") for name in names]
    tensors = whole(names[0], scheme, (4, 192)) | whole(names[1], scheme, (4, 128))
    checkpoint = memory.checkpoint(tensors, weights, model_config=MODEL)
    (each,) = doubts(checkpoint)
    assert (each.weights, each.unproven) == ((weights[0],), (weights[1],))
    (found,) = not_provable.run(checkpoint)
    assert (found.actual, found.at[0].tensor) == (2, names[0])


def test_what_is_no_part_of_a_sound_weight_is_left_to_the_rules() -> None:
    tensors = whole(NAMES[0], SCHEMES[0], (4, 128)) | {"norm": ("F16", (128,))}
    weight = Weight(NAMES[0], SCHEMES[0], "", (4, 128))
    (each,) = doubts(memory.checkpoint(tensors, [weight]))
    assert (each.weights, each.others) == ((), ("norm",))
