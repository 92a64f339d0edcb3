"""`quark`: specs of weights, orders, zero points, levels, and wildcards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.lowering import component, index_of, lower, of_kind

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind
from qmanifest.manifest import Manifest
from qmanifest.schemes import Integer, Opaque, Scaled
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
Tensor = "tuple[str, Shape]"


def config(*specs: Config, **others: object) -> Config:
    weight = specs[0] if len(specs) == 1 else list(specs)
    return {
        "quant_method": "quark",
        "global_quant_config": {"weight": weight},
        **others,
    }


def spec(dtype: str, qscheme: str = "per_tensor", **others: object) -> Config:
    return {"dtype": dtype, "qscheme": qscheme, **others}


GROUPS = spec("uint4", "per_group", group_size=32)


def stored(
    codes: tuple[str, Shape], scales: tuple[str, Shape], **more: tuple[str, Shape]
) -> TensorIndex:
    parts = {f"a.weight_{name}": each for name, each in more.items()}
    return index_of({"a.weight": codes, "a.weight_scale": scales, **parts})


def scheme(document: Config, index: TensorIndex) -> Scheme:
    (weight,) = component("quark", document, index).weights
    return weight.scheme


def shapes(found: Scheme, shape: Shape) -> dict[str, Shape | None]:
    return {role: size for role, _, size in found.parts(shape)}


@pytest.mark.parametrize(
    ("order", "pack"), [("reorder", "i32-awq"), ("order", "i32-lsb")]
)
def test_groups_of_four_bits_lie_inputs_first(order: str, pack: str) -> None:
    index = stored(("I32", (64, 4)), ("BF16", (2, 32)), zero_point=("I32", (2, 4)))
    found = scheme(config(GROUPS, export={"pack_method": order}), index)
    assert isinstance(found, Integer)
    assert (found.code, found.pack) == ("unsigned", f"{pack}-across")
    assert (found.zero.kind, found.zero.pack) == ("code", pack)
    assert shapes(found, (32, 64)) | {"input_scale": None} == {
        "codes": (64, 4),
        "scales": (2, 32),
        "zeros": (2, 4),
        "input_scale": None,
    }


def test_int4_is_two_s_complement_and_may_have_no_zeros() -> None:
    index = stored(("I32", (64, 4)), ("BF16", (2, 32)))
    found = scheme(config(GROUPS | {"dtype": "int4"}), index)
    assert isinstance(found, Integer)
    assert (found.code, found.zero.kind) == ("signed", "none")


def test_zero_points_are_promised_where_nothing_is_symmetric() -> None:
    index = stored(("I32", (64, 4)), ("BF16", (2, 32)))
    found = scheme(config(GROUPS | {"symmetric": False}), index)
    assert "zeros" in shapes(found, (32, 64))


def test_zero_points_may_be_floats() -> None:
    index = stored(("I32", (64, 4)), ("BF16", (2, 32)), zero_point=("BF16", (2, 32)))
    found = scheme(config(GROUPS | {"zero_point_type": "float32"}), index)
    assert isinstance(found, Integer)
    assert "BF16" in found.zero.dtypes
    assert shapes(found, (32, 64))["zeros"] == (2, 32)


@pytest.mark.parametrize(
    ("qscheme", "scales", "zeros"),
    [("per_channel", (32,), (4,)), ("per_tensor", (), ())],
)
def test_four_bits_without_groups_lie_outputs_first(
    qscheme: str, scales: Shape, zeros: Shape
) -> None:
    index = stored(("I32", (32, 8)), ("BF16", scales), zero_point=("I32", zeros))
    found = shapes(scheme(config(spec("uint4", qscheme)), index), (32, 64))
    assert (found["codes"], found["scales"], found["zeros"]) == ((32, 8), scales, zeros)


def test_bytes() -> None:
    index = stored(("I8", (32, 64)), ("F32", (32,)), zero_point=("I8", (32,)))
    found = scheme(config(spec("int8", "per_channel")), index)
    assert isinstance(found, Integer)
    assert found.zero.dtypes == ("I8",)
    index = stored(("I8", (64, 32)), ("F32", (2, 32)))
    found = scheme(config(spec("int8", "per_group", group_size=32)), index)
    assert isinstance(found, Opaque)
    assert found.logical((64, 32)) == (32, 64)
    assert shapes(found, (32, 64))["scales"] == (2, 32)


@pytest.mark.parametrize(
    ("own", "scales", "spread"),
    [
        (spec("fp8_e4m3"), (), Spread(0, 0, "scalar")),
        (spec("fp8_e4m3"), (1,), Spread(0, 0, "one")),
        (spec("fp8_e4m3", "per_channel"), (32,), Spread(1, 0, "vector")),
        (spec("fp8_e4m3", "per_channel"), (32, 1), Spread(1, 0, "table")),
        (spec("fp8_e4m3", "per_group", group_size=16), (32, 4), Spread(1, 16)),
        (spec("fp8_e4m3", "per_block", block_size=[16, 32]), (2, 2), Spread(16, 32)),
    ],
)
def test_float8(own: Config, scales: Shape, spread: Spread) -> None:
    found = scheme(config(own), stored(("F8_E4M3", (32, 64)), ("F32", scales)))
    assert isinstance(found, Scaled)
    assert found.spread == spread
    assert shapes(found, (32, 64))["scales"] == scales


@pytest.mark.parametrize("scales", [(), (1,)])
def test_a_scale_for_each_output_is_promised_whatever_is_stored(scales: Shape) -> None:
    own = spec("fp8_e4m3", "per_channel")
    found = scheme(config(own), stored(("F8_E4M3", (32, 64)), ("F32", scales)))
    assert shapes(found, (32, 64))["scales"] == (32,)


@pytest.mark.parametrize(
    ("dtype", "codes", "pack"),
    [("fp4", (32, 32), "u8-nibbles"), ("fp6_e2m3", (32, 48), "u8-lsb")],
)
def test_microscaling(dtype: str, codes: Shape, pack: str) -> None:
    own = spec(dtype, "per_group", group_size=32, scale_format="e8m0")
    found = scheme(config(own), stored(("U8", codes), ("U8", (32, 2))))
    assert isinstance(found, Scaled)
    assert (found.pack, found.scale_format) == (pack, "e8m0")
    assert shapes(found, (32, 64))["codes"] == codes


def test_two_levels_are_nvfp4() -> None:
    two = (spec("fp4", "per_group", group_size=16), spec("fp8_e4m3"))
    index = stored(("U8", (32, 32)), ("F8_E4M3", (32, 4)), scale_2=("F32", ()))
    found = scheme(config(*two), index)
    assert isinstance(found, Scaled)
    assert (found.scale_format, found.global_scale) == ("e4m3", "multiply")
    other = (spec("int4", "per_group", group_size=32), spec("fp8_e4m3"))
    assert isinstance(scheme(config(*other), index), Opaque)


@pytest.mark.parametrize(
    ("own", "codes"),
    [
        (spec("fp6_e3m2", "per_group", group_size=32), ("U8", (32, 48))),
        (
            spec("fp4", "per_group", group_size=16, scale_format="e5m3"),
            ("U8", (32, 32)),
        ),
        (spec("int3", "per_channel"), ("U8", (32, 24))),
        (spec("banana"), ("U8", (32, 24))),
    ],
)
def test_what_is_not_decoded(own: Config, codes: tuple[str, Shape]) -> None:
    index = stored(codes, ("U8", (32, 2)))
    lowered = lower("quark", config(own), index)
    ((weight,),) = (each.weights for each in lowered.manifest.components)
    assert isinstance(weight.scheme, Opaque)


def test_scales_among_the_codes_leave_bytes_alone() -> None:
    index = index_of({"a.weight": ("U8", (32, 34)), "n.weight": ("F16", (64,))})
    assert isinstance(
        scheme(config(spec("mx", "per_group", group_size=32)), index), Opaque
    )


def test_wildcards_cross_dots_and_layers_win() -> None:
    tensors: dict[str, tuple[str, Shape]] = {}
    for module in ("l.0.q", "l.1.q"):
        tensors |= {f"{module}.weight": ("F8_E4M3", (4, 64))}
        tensors |= {f"{module}.weight_scale": ("F32", ())}
    tensors["lm_head.weight"] = ("F16", (4, 64))
    document = config(
        spec("fp8_e4m3", "per_channel"),
        layer_quant_config={"*.1.*": {"weight": spec("fp8_e4m3")}},
        exclude=["lm_*"],
    )
    found = component("quark", document, index_of(tensors))
    pointers = {each.name: each.pointer for each in found.weights}
    assert pointers == {
        "l.0.q.weight": "/global_quant_config",
        "l.1.q.weight": "/layer_quant_config/*.1.*",
    }
    assert [each.name for each in found.kept] == ["lm_head.weight"]
    assert found.every_linear


def test_specs_that_cannot_be() -> None:
    lowered = lower("quark", config(spec("int5", "per_group", group_size=0)))
    assert len(of_kind(lowered, DefectKind.INVALID_VALUE)) == 2


def test_nothing_is_written() -> None:
    with pytest.raises(EmitError, match="not written"):
        dialect_named("quark").emit(Manifest("quark"))
