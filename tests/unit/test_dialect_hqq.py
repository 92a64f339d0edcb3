"""`hqq`: settings of all layers or by tag, axes, widths, and what lies beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest
from qmanifest.schemes import Integer, Opaque
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
Q: Final = "model.layers.0.self_attn.q_proj"


def config(**params: object) -> Config:
    own = {"nbits": 4, "group_size": 64, "axis": 1, **params}
    return {"quant_method": "hqq", "quant_config": {"weight_quant_params": own}}


def stored(
    codes: tuple[str, Shape] = ("U8", (16, 64)), scales: Shape = (32, 1)
) -> TensorIndex:
    return index_of(
        {
            f"{Q}.W_q": codes,
            f"{Q}.scale": ("F16", scales),
            f"{Q}.zero": ("F16", scales),
            f"{Q}.shape": ("I64", (2,)),
            f"{Q}.nbits": ("I32", ()),
        }
    )


def scheme(document: Config, index: TensorIndex) -> Scheme:
    (weight,) = component("hqq", document, index).weights
    return weight.scheme


@pytest.mark.parametrize(
    ("bits", "codes", "pack"),
    [
        (8, ("U8", (32, 64)), "u8-split-high"),
        (6, ("U8", (32, 64)), "u8-split-high"),
        (5, ("U8", (32, 64)), "u8-split-high"),
        (4, ("U8", (16, 64)), "u8-split-high"),
        (3, ("I32", (4, 64)), "i32-split-high"),
        (2, ("U8", (8, 64)), "u8-split-high"),
        (1, ("U8", (4, 64)), "u8-split-high"),
    ],
)
def test_widths(bits: int, codes: tuple[str, Shape], pack: str) -> None:
    found = scheme(config(nbits=bits), stored(codes))
    assert isinstance(found, Integer)
    assert (found.bits, found.pack) == (bits, pack)
    assert found.spread == Spread(0, 64, "flat-column")
    parts = {role: shape for role, _, shape in found.parts((32, 64))}
    assert parts["codes"] == codes[1]
    assert parts["scales"] == (32, 1)


def test_three_values_lie_in_two_bits() -> None:
    found = scheme(config(nbits=1.58), stored(("U8", (8, 64))))
    assert isinstance(found, Integer)
    assert (found.bits, found.pack) == (2, "u8-split-high")


@pytest.mark.parametrize("axis", [0, None])
def test_the_other_axis_is_said_or_shows(axis: int | None) -> None:
    found = scheme(config(axis=axis), stored(("U8", (32, 32)), (1, 32)))
    assert isinstance(found, Integer)
    assert found.spread == Spread(0, 64, "flat-row")


@pytest.mark.parametrize(
    ("axis", "scales", "spread"),
    [
        (1, (32, 1), Spread(0, 64, "flat-column")),
        (0, (1, 64), Spread(0, 32, "flat-row")),
    ],
)
def test_without_groups_rows_or_columns_are_blocks(
    axis: int, scales: Shape, spread: Spread
) -> None:
    found = scheme(config(group_size=None, axis=axis), stored(scales=scales))
    assert isinstance(found, Integer)
    assert found.spread == spread
    parts = {role: shape for role, _, shape in found.parts((32, 64))}
    assert parts["codes"] == (16, 64)
    assert parts["scales"] == scales


@pytest.mark.parametrize(
    ("params", "codes"),
    [
        ({"view_as_float": True}, ("F16", (16, 32))),
        ({"channel_wise": False}, ("U8", (16, 64))),
    ],
)
def test_what_is_not_decoded(params: Config, codes: tuple[str, Shape]) -> None:
    found = scheme(config(**params), stored(codes))
    assert isinstance(found, Opaque)
    assert found.bits == 4


def test_settings_are_promised_with_their_numbers() -> None:
    found = scheme(config(), stored())
    assert isinstance(found, Integer)
    values = {each.role: each.value for each in found.extras}
    assert values["hqq_nbits"] == 4
    assert values["hqq_group_size"] == 64
    assert values["hqq_axis"] == 1
    assert "hqq_shape" not in found.optional
    assert len(found.extras) == 16


def by_tag(**tags: Config) -> Config:
    return {"quant_method": "hqq", "quant_config": tags, "skip_modules": ["lm_head"]}


def test_tags_are_names_without_numbers() -> None:
    own = config(nbits=8)["quant_config"]
    document = by_tag(**{"self_attn.q_proj": own, "self_attn": own})
    lowered = lower("hqq", document, stored(("U8", (32, 64))))
    (found,) = lowered.manifest.components
    (weight,) = found.weights
    assert weight.pointer == "/quant_config/self_attn.q_proj"
    assert weight.scheme.bits == 8
    assert not found.every_linear
    used = {entry.pattern.text: len(entry.matches) for entry in found.entries}
    assert used == {"lm_head": 0, "self_attn.q_proj": 1, "self_attn": 0}


def test_a_layer_without_settings_is_not_declared() -> None:
    document = by_tag(**{"self_attn.k_proj": config()["quant_config"]})
    assert component("hqq", document, stored()).weights == ()


def test_settings_that_hqq_does_not_have() -> None:
    lowered = lower("hqq", config(nbits=7, axis=2, group_size=20), stored())
    assert len(of_kind(lowered, DefectKind.IMPOSSIBLE_SCHEME)) == 1
    assert len(of_kind(lowered, DefectKind.INVALID_VALUE)) == 2
    ((weight,),) = (each.weights for each in lowered.manifest.components)
    assert isinstance(weight.scheme, Opaque)


def test_scales_that_are_quantized_cannot_be_saved() -> None:
    document = config()
    document["quant_config"]["zero_quant_params"] = {"nbits": 8}
    (defect,) = lower("hqq", document).defects
    assert defect.problem.severity is Severity.WARNING
    assert defect.problem.at[0].pointer == "/quant_config/zero_quant_params"


def test_emit_writes_what_was_read() -> None:
    document = config(nbits=3, axis=0) | {"skip_modules": ["lm_head"]}
    index = stored(("I32", (7, 32)), (1, 32))
    lowered = lower("hqq", document, index)
    again = lower("hqq", emit_again("hqq", lowered), index)
    one, two = (each.manifest.components[0] for each in (lowered, again))
    assert two.weights == one.weights
    assert len(one.weights) == 1
    with pytest.raises(EmitError, match="one model"):
        dialect_named("hqq").emit(Manifest("hqq"))
