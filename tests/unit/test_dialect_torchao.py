"""`torchao`: configs and tables of them, fields as they are stored, and headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects.torchao.said import Said, said_by
from qmanifest.findings import DefectKind, Severity
from qmanifest.schemes import Integer, Opaque, Scaled, Scheme
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
Tensors = dict[str, "tuple[str, Shape]"]


def made(kind: str, version: int = 2, **data: object) -> Config:
    return {"_type": kind, "_version": version, "_data": data}


def group(size: int) -> Config:
    return made("PerGroup", 1, group_size=size)


INT8: Final = made("Int8WeightOnlyConfig", granularity=made("PerRow", 1, dim=-1))
INT4: Final = made(
    "IntxWeightOnlyConfig",
    weight_dtype={"_type": "torch.dtype", "_data": "int4"},
    granularity=group(32),
)
FLOAT8: Final = made("Float8WeightOnlyConfig")


def whole(config: object) -> Config:
    return {"quant_method": "torchao", "quant_type": {"default": config}}


def table(**by_name: Config | None) -> Config:
    return whole(made("FqnToConfig", 1, fqn_to_config=by_name))


def fields(module: str, **own: tuple[str, Shape]) -> Tensors:
    return {f"{module}._weight_{field}": each for field, each in own.items()}


def int8(module: str) -> Tensors:
    return fields(
        module,
        qdata=("I8", (64, 96)),
        scale=("F32", (64, 1)),
        zero_point=("I8", (64, 1)),
    )


def scheme(config: Config, index: TensorIndex) -> Scheme:
    (weight,) = component("torchao", config, index).weights
    return weight.scheme


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (INT8, Said("Int8WeightOnlyConfig", 8, 0)),
        (INT4, Said("IntxWeightOnlyConfig", 4, 32)),
        (made("IntxWeightOnlyConfig"), Said("IntxWeightOnlyConfig", 8, None)),
        (made("int8_weight_only"), Said("Int8WeightOnlyConfig", 8, None)),
        (made("Int4WeightOnlyConfig"), Said("Int4WeightOnlyConfig", 4, 128)),
        (
            made("Int4WeightOnlyConfig", group_size=64),
            Said("Int4WeightOnlyConfig", 4, 64),
        ),
        (
            made("Int8DynamicActivationIntxWeightConfig", weight_granularity=group(64)),
            Said("Int8DynamicActivationIntxWeightConfig", 8, 64),
        ),
        (
            made(
                "Float8DynamicActivationFloat8WeightConfig",
                granularity=[made("PerTensor", 1), made("PerRow", 1)],
            ),
            Said("Float8DynamicActivationFloat8WeightConfig", 8, 0),
        ),
        (made("Int5Config"), Said(None, 8, None)),
        ({}, Said(None, 8, None)),
    ],
)
def test_what_a_config_says(config: Config, said: Said) -> None:
    assert said_by(config) == said


def test_int8_has_a_scale_for_a_row() -> None:
    found = scheme(whole(INT8), index_of(int8("a")))
    assert isinstance(found, Integer)
    assert (found.bits, found.spread) == (8, Spread(1, 0))


@pytest.mark.parametrize("config", [INT4, made("IntxWeightOnlyConfig")])
def test_groups_are_said_or_show(config: Config) -> None:
    own = fields("a", qdata=("I8", (64, 96)), scale=("BF16", (64, 3)))
    found = scheme(whole(config), index_of(own))
    assert isinstance(found, Integer)
    assert found.spread == Spread(1, 32)
    assert found.zero.kind == "none"


def test_scales_that_divide_no_row_are_not_explained_away() -> None:
    own = fields("a", qdata=("I8", (64, 96)), scale=("BF16", (64, 5)))
    found = scheme(whole(made("IntxWeightOnlyConfig")), index_of(own))
    parts = {role: shape for role, _, shape in found.parts((64, 96))}
    assert parts["scales"] == (64, 1)


@pytest.mark.parametrize(
    ("shape", "spread"),
    [
        ((64, 1), Spread(1, 0)),
        ((1, 1), Spread(0, 0)),
        ((64, 2), Spread(1, 128)),
        ((1, 2), Spread(128, 128)),
        ((), Spread(0, 0, "scalar")),
        ((1,), Spread(0, 0, "one")),
        ((7, 1), Spread(1, 0)),
    ],
)
def test_scales_of_float8(shape: Shape, spread: Spread) -> None:
    own = fields("a", qdata=("F8_E4M3", (64, 256)), scale=("F32", shape))
    found = scheme(whole(FLOAT8), index_of(own))
    assert isinstance(found, Scaled)
    assert found.spread == spread


@pytest.mark.parametrize(
    ("kind", "dtype", "shape", "form"),
    [
        ("NVFP4WeightOnlyConfig", "F8_E4M3", (64, 16), "table"),
        ("NVFP4WeightOnlyConfig", "F8_E4M3", (32, 64), "swizzled"),
        ("MXDynamicActivationMXWeightConfig", "F8_E8M0", (64, 8), "table"),
        ("MXDynamicActivationMXWeightConfig", "F8_E8M0", (32, 32), "swizzled"),
        ("MXDynamicActivationMXWeightConfig", "F8_E8M0", (64, 9), "swizzled"),
    ],
)
def test_scales_of_groups_are_a_table_or_tiles(
    kind: str, dtype: str, shape: Shape, form: str
) -> None:
    own = fields("a", qdata=("U8", (64, 128)), scale=(dtype, shape))
    found = scheme(whole(made(kind)), index_of(own))
    assert isinstance(found, Scaled)
    assert found.spread.form == form
    assert found.spread.columns == (16 if dtype == "F8_E4M3" else 32)


def test_scales_are_promised_where_they_are_lost() -> None:
    own = fields("a", qdata=("I8", (64, 96)))
    found = scheme(whole(INT8), index_of(own))
    assert "scales" in {role for role, _, _ in found.parts(None)}
    assert "scales" not in found.optional


@pytest.mark.parametrize(
    ("own", "shape"),
    [
        (("I8", (64, 128)), (64, 256)),
        (("I32", (64, 32)), (64, 256)),
        (("I32", (8, 2, 32, 4)), (64, 256)),
        (("U8", (3, 64, 128)), None),
    ],
)
def test_packed_int4_is_measured(own: tuple[str, Shape], shape: Shape | None) -> None:
    index = index_of(fields("a", qdata=own))
    found = scheme(whole(made("Int4WeightOnlyConfig", group_size=64)), index)
    assert isinstance(found, Opaque)
    logical = found.logical(own[1])
    assert logical == shape or (shape is None and logical == (64, 256))


@pytest.mark.parametrize("module", ["gate_up_proj", "down_proj"])
def test_experts_in_one_tensor(module: str) -> None:
    tensors: Tensors = {
        f"m.experts._{module}_qdata": ("F8_E4M3", (4, 64, 96)),
        f"m.experts._{module}_scale": ("F32", (4, 64, 1)),
    }
    config = table(**{f"m.experts.{module}": FLOAT8})
    (weight,) = component("torchao", config, index_of(tensors)).weights
    assert weight.name == f"m.experts.{module}"
    assert weight.codes == f"m.experts._{module}_qdata"
    parts = {part.role: part.shape for part in weight.parts((4, 64, 96))}
    assert parts["scales"] == (4, 64, 1)


def test_names_come_before_expressions_and_the_default() -> None:
    config = table(
        **{
            "re:layers\\..*\\.q": INT4,
            "layers.0.q": INT8,
            "layers.1.q.weight": FLOAT8,
            "_default": FLOAT8,
        }
    )
    tensors = {
        **int8("layers.0.q"),
        **fields("layers.1.q", qdata=("F8_E4M3", (4, 32)), scale=("F32", (4, 1))),
        **fields("layers.2.q", qdata=("I8", (4, 64)), scale=("F32", (4, 2))),
        **fields("layers.2.k", qdata=("F8_E4M3", (4, 32)), scale=("F32", (4, 1))),
    }
    found = component("torchao", config, index_of(tensors))
    way = "/quant_type/default/_data/fqn_to_config/"
    assert {each.name: each.pointer.removeprefix(way) for each in found.weights} == {
        "layers.0.q.weight": "layers.0.q",
        "layers.1.q.weight": "layers.1.q.weight",
        "layers.2.q.weight": "re:layers\\..*\\.q",
        "layers.2.k.weight": "_default",
    }
    assert found.every_linear


def test_null_keeps_unless_a_name_quantizes() -> None:
    config = table(**{"re:.*": None, "a": INT8})
    tensors: Tensors = {**int8("a"), "b.weight": ("F16", (4, 64))}
    found = component("torchao", config, index_of(tensors))
    assert [each.name for each in found.kept] == ["b.weight"]
    assert [each.name for each in found.weights] == ["a.weight"]
    assert not found.every_linear


def test_without_a_default_unnamed_modules_are_not_declared() -> None:
    assert component("torchao", table(b=None), index_of(int8("a"))).weights == ()


@pytest.mark.parametrize(
    ("config", "own"),
    [
        (FLOAT8, int8("a")),
        (INT8, fields("a", qdata=("F8_E4M3", (4, 64)), scale=("F32", (4, 1)))),
        (
            made("NVFP4WeightOnlyConfig"),
            fields("a", qdata=("U8", (4, 32)), scale=("F8_E8M0", (4, 2))),
        ),
    ],
)
def test_codes_of_another_config_are_a_contradiction(
    config: Config, own: Tensors
) -> None:
    lowered = lower("torchao", whole(config), index_of(own))
    (defect,) = of_kind(lowered, DefectKind.CONTRADICTION)
    assert defect.problem.severity is None
    assert defect.problem.expected == config["_type"]


def test_tables_that_differ_and_configs_of_nobody() -> None:
    data = {"fqn_to_config": {"a": INT8}, "module_fqn_to_config": {"a": FLOAT8}}
    lowered = lower("torchao", whole(made("FqnToConfig", 1, **data)))
    assert len(of_kind(lowered, DefectKind.CONTRADICTION)) == 1
    lowered = lower("torchao", table(a=made("BananaConfig"), b=INT8))
    (defect,) = lowered.defects
    assert defect.problem.severity is Severity.WARNING
    assert defect.problem.actual == "BananaConfig"


def test_old_files_name_a_config() -> None:
    config = {
        "quant_method": "torchao",
        "quant_type": "int4_weight_only",
        "quant_type_kwargs": {"group_size": 32},
    }
    assert lower("torchao", config).defects == ()
    found = scheme(config, index_of(fields("a", qdata=("I8", (4, 32)))))
    assert isinstance(found, Opaque)
    assert found.group_size == 32


@pytest.mark.parametrize(
    "config", [whole(INT8), table(**{"a": INT8, "re:b": INT4, "c": None})]
)
def test_emit_writes_what_was_read(config: Config) -> None:
    tensors: Tensors = {**int8("a"), "c.weight": ("F16", (4, 64))}
    if "re:b" in str(config):
        tensors |= fields("b", qdata=("I8", (4, 64)), scale=("F32", (4, 2)))
    lowered = lower("torchao", config, index_of(tensors))
    again = emit_again("torchao", lowered)
    second = lower("torchao", again, index_of(tensors))
    one, two = (each.manifest.components[0] for each in (lowered, second))
    assert {w.name: w.scheme for w in one.weights} == {
        w.name: w.scheme for w in two.weights
    }
    assert {k.name for k in one.kept} == {k.name for k in two.kept}
    assert second.defects == ()
