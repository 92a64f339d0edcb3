"""Which bits and group size stored shapes are taken for, with each kind of witness."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from support import memory

from qmanifest.manifest import Weight
from qmanifest.rules.layout import not_provable, wrong_bits, wrong_group, wrong_shape
from qmanifest.rules.readings import BITS, GROUPS, packed_weights
from qmanifest.schemes import Affine, Microscaling, ZeroPoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.findings import Finding
    from qmanifest.rules.readings import Packed
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

NAME = "model.layers.0.mlp.up_proj.weight"
WIDTH = 384
"""Whole groups of 128, and whole words in every width."""
ROWS = 16
SHAPE = (ROWS, WIDTH)
WITNESSES: dict[str, dict[str, Any]] = {
    "declared": {"declared": SHAPE},
    "original": {"original": {NAME: ("BF16", SHAPE)}},
    "dimensions": {"model_config": {"hidden_size": WIDTH}},
    "none": {},
}
FAITHFUL = [kind for kind in WITNESSES if kind != "none"]
PAIRS = tuple(product(BITS, GROUPS))
RULES = (wrong_bits, wrong_group, wrong_shape)
MXFP4 = Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none")
MXFP8 = Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none")
NVFP4 = Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none")


def affine(pair: tuple[int, int]) -> Affine:
    return Affine(*pair, ("F16",), "u32-lsb")


def stored(scheme: Scheme, shape: Shape = SHAPE) -> dict[str, tuple[str, Shape]]:
    """Store a weight just as its scheme asks for."""
    made = {}
    for part in Weight(NAME, scheme, "").parts(shape):
        assert part.shape is not None
        made[part.name] = part.dtypes[0], part.shape
    return made


def checkpoint(
    promised: Scheme,
    tensors: Mapping[str, tuple[str, Shape]],
    *,
    declared: Shape | None = None,
    **witness: Any,  # noqa: ANN401 - one row of WITNESSES
) -> Checkpoint:
    weight = Weight(NAME, promised, "/tensors/x", declared)
    return memory.checkpoint(tensors, [weight], **witness)


def read(opened: Checkpoint) -> Packed:
    (packed,) = packed_weights(opened)
    return packed


def findings(opened: Checkpoint) -> list[Finding]:
    return [finding for rule in RULES for finding in rule.run(opened)]


@pytest.mark.parametrize("promised", PAIRS, ids="{0[0]}-bit/{0[1]}".format)
@pytest.mark.parametrize("kind", FAITHFUL)
def test_witness_tells_what_is_stored(kind: str, promised: tuple[int, int]) -> None:
    for actual in PAIRS:
        opened = checkpoint(affine(promised), stored(affine(actual)), **WITNESSES[kind])
        packed = read(opened)
        assert packed.readings == (actual,)
        if promised == actual:
            assert packed.fault is None
            assert not findings(opened)
            continue
        assert packed.fault == ("group" if promised[0] == actual[0] else "bits")
        (finding,) = findings(opened)
        assert finding.code == ("QM302" if packed.fault == "group" else "QM301")
        assert f"declared {promised[0]}-bit/{promised[1]}" in finding.message
        assert f"stored as {actual[0]}-bit/{actual[1]}:" in finding.message
        assert str(WIDTH) in finding.message
        assert f"bits {actual[0]} and group_size {actual[1]}" in str(finding.hint)


@pytest.mark.parametrize("promised", PAIRS, ids="{0[0]}-bit/{0[1]}".format)
def test_without_witness_only_the_product_is_known(promised: tuple[int, int]) -> None:
    for actual in PAIRS:
        opened = checkpoint(affine(promised), stored(affine(actual)))
        packed = read(opened)
        alike = actual[0] * actual[1] == promised[0] * promised[1]
        assert actual in packed.readings
        assert (packed.fault is None) == alike
        assert bool(findings(opened)) == (not alike)
        notes = list(not_provable.run(opened))
        assert bool(notes) == (alike and len(packed.readings) > 1)
        for finding in findings(opened):
            assert f"declared {promised[0]}-bit/{promised[1]}" in finding.message
            assert f"{actual[0]}-bit/{actual[1]}" in finding.message


def test_likeliest_reading_comes_first() -> None:
    same_group = read(checkpoint(affine((4, 64)), stored(affine((8, 64)))))
    assert same_group.readings == ((8, 64), (4, 128))
    assert same_group.fault == "bits"
    same_bits = read(checkpoint(affine((3, 64)), stored(affine((3, 128)))))
    assert same_bits.readings == ((6, 64), (3, 128))
    other = read(checkpoint(affine((4, 64)), stored(affine((4, 32)))))
    assert other.readings == ((2, 64), (4, 32))
    neither = read(checkpoint(affine((5, 32)), stored(affine((4, 64)))))
    assert neither.readings == ((8, 32), (2, 128), (4, 64))


@pytest.mark.parametrize("kind", FAITHFUL)
def test_another_width_than_the_witness(kind: str) -> None:
    """Twice the width: bits and group are as promised, the shape is not."""
    tensors = stored(affine((3, 32)), (ROWS, 5 * WIDTH))
    opened = checkpoint(affine((3, 32)), tensors, **WITNESSES[kind])
    if kind == "dimensions":  # a module that is only called like one of the model's
        assert read(opened).witness is None
        assert not findings(opened)
        return
    (finding,) = findings(opened)
    assert finding.code == "QM304"
    assert f"[{ROWS}, {5 * WIDTH}]" in finding.message
    assert f"[{ROWS}, {WIDTH}]" in finding.message


@pytest.mark.parametrize("kind", ["declared", "original"])
def test_other_rows_than_the_witness(kind: str) -> None:
    tensors = stored(affine((3, 32)), (2 * ROWS, WIDTH))
    opened = checkpoint(affine((3, 32)), tensors, **WITNESSES[kind])
    (finding,) = findings(opened)
    assert finding.code == "QM304"
    assert finding.expected == list(SHAPE)
    assert finding.actual == [2 * ROWS, WIDTH]


def test_scales_that_divide_nothing() -> None:
    tensors = stored(affine((4, 64)))
    scales, biases = (NAME.replace("weight", role) for role in ("scales", "biases"))
    tensors[scales] = tensors[biases] = "F16", (ROWS, 5)
    for witness in WITNESSES.values():
        packed = read(checkpoint(affine((4, 64)), tensors, **witness))
        assert packed.product is None
        assert packed.fault == "group"
        (finding,) = findings(checkpoint(affine((4, 64)), tensors, **witness))
        assert "stored as neither" in finding.message
    tensors[scales] = tensors[biases] = "F16", (ROWS, 0)
    assert read(checkpoint(affine((4, 64)), tensors)).product is None


def test_codes_that_fill_no_groups() -> None:
    tensors = stored(affine((4, 64)))
    tensors[NAME] = "U32", (ROWS, 49)
    packed = read(checkpoint(affine((4, 64)), tensors))
    assert packed.fault == "bits"
    declared = read(checkpoint(affine((4, 64)), tensors, declared=SHAPE))
    assert declared.fault == "bits"


@pytest.mark.parametrize("promised", [MXFP4, MXFP8, NVFP4], ids=str)
def test_microscaling_fits_itself_alone(promised: Microscaling) -> None:
    for actual in (MXFP4, MXFP8, NVFP4):
        packed = read(checkpoint(promised, stored(actual)))
        assert (packed.fault is None) == (promised == actual)
        assert packed.readings == (
            ((promised.bits, promised.group_size),) if promised == actual else ()
        )


def test_nibbles_hold_four_bits_only() -> None:
    nibbles = ZeroPoint(4, 64, ("F16",), ("U8",), "u8-nibbles")
    assert read(checkpoint(nibbles, stored(nibbles))).readings == ((4, 64),)
    wrong = ZeroPoint(4, 32, ("F16",), ("U8",), "u8-nibbles")
    assert read(checkpoint(wrong, stored(nibbles))).fault == "group"


def test_other_rules_have_what_cannot_be_read() -> None:
    """Codes of another word or scales of another mode are QM303's, not a misreading."""
    tensors = stored(affine((4, 64)))
    scales = NAME.replace("weight", "scales")
    for name, changed in {
        NAME: ("F16", SHAPE),
        scales: ("U8", (ROWS, WIDTH // 64)),
    }.items():
        opened = checkpoint(affine((4, 64)), {**tensors, name: changed})
        assert not list(packed_weights(opened))
    assert not list(packed_weights(checkpoint(MXFP4, tensors)))
    assert not list(packed_weights(checkpoint(affine((4, 64)), {})))
    scalar = {**tensors, scales: ("F16", ())}
    assert not list(packed_weights(checkpoint(affine((4, 64)), scalar)))
