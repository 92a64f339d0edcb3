"""A weight that is not doubted is one of which no rule has anything to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import memory

from qmanifest.manifest import Weight
from qmanifest.rules import RULES
from qmanifest.rules.base import Depth
from qmanifest.rules.doubtful import doubtful
from qmanifest.schemes import Affine, Microscaling, Scheme

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
    Affine(4, 64, ("F16", "BF16")),
    Affine(4, 64, ("F16",), "u8-nibbles"),
    Affine(2, 128, ("F16",)),
    Affine(7, 32, ("F16",)),
    Affine(4, 48, ("F16",)),
    Microscaling("e2m1", 32, "e8m0"),
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


@st.composite
def checkpoints(draw: st.DrawFn) -> Checkpoint:
    """Promise one weight, and store it with up to two faults."""
    name, scheme = draw(st.sampled_from(NAMES)), draw(st.sampled_from(SCHEMES))
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
    weight = Weight(name, scheme, "/tensors/x", declared)
    model = draw(st.sampled_from(({}, MODEL)))
    return memory.checkpoint(tensors, [weight], model_config=model)


@given(checkpoint=checkpoints())
def test_nothing_is_found_of_what_is_not_doubted(checkpoint: Checkpoint) -> None:
    if not doubtful(checkpoint):
        assert not [f for f in judged(checkpoint) if f.code[:3] in {"QM2", "QM3"}]


def whole(name: str, scheme: Scheme, shape: Shape) -> dict[str, tuple[str, Shape]]:
    """Store a weight as promised."""
    parts = Weight(name, scheme, "").parts(shape)
    return {p.name: (p.dtypes[0], p.shape) for p in parts if p.shape is not None}


@pytest.mark.parametrize("scheme", SCHEMES[:3], ids=str)
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
