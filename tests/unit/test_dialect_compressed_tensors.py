"""`compressed-tensors`: groups, targets, formats, and what the tensors decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.compressed_tensors import (
    FP8,
    NVFP4,
    W4,
    Tensors,
    config,
    dense,
    floats,
    packed,
)
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named, recognize
from qmanifest.dialects.base import Place
from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
from qmanifest.dialects.compressed_tensors.schemes import sparse
from qmanifest.dialects.documents.parsing import parse
from qmanifest.errors import EmitError, InvalidConfigError
from qmanifest.families import PACKED, SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine, Integer, Opaque, Scaled
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

ID = "compressed-tensors"
CONFIGS = sorted(
    (Path(__file__).parents[3] / "shared" / "configs").glob("compressed-tensors*.json")
)
Config = dict[str, Any]


def only_scheme(said: Config, tensors: Tensors) -> Scheme:
    """Lower a config of one stored weight, in which nothing is wrong."""
    (weight,) = component(ID, said, index_of(tensors)).weights
    return weight.scheme


def integer(said: Config, tensors: Tensors) -> Integer:
    scheme = only_scheme(said, tensors)
    assert isinstance(scheme, Integer)
    return scheme


def scaled(said: Config, tensors: Tensors) -> Scaled:
    scheme = only_scheme(said, tensors)
    assert isinstance(scheme, Scaled)
    return scheme


def reasons(said: Config) -> list[tuple[str | None, Severity | None]]:
    """List where the impossible is, and how bad."""
    return [
        (defect.problem.at[0].pointer, defect.problem.severity)
        for defect in of_kind(lower(ID, said), DefectKind.IMPOSSIBLE_SCHEME)
    ]


# Where configs lie


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        ({"quant_method": ID}, ()),
        ({"quantization_config": config()}, ("quantization_config",)),
        ({"compression_config": {"config_groups": {}}}, ("compression_config",)),
        (
            {"text_config": {"quantization_config": config()}},
            ("text_config", "quantization_config"),
        ),
        (
            {"compression_config": {"quantization_config": {"format": "dense"}}},
            ("compression_config", "quantization_config"),
        ),
        (
            {"quantization_config": {"quantization_config": config()}},
            ("quantization_config", "quantization_config"),
        ),
    ],
)
def test_located(raw: Config, keys: tuple[str, ...]) -> None:
    (dialect,) = recognize({"model_type": "toy", **raw} if keys else raw)
    assert dialect.id == ID
    assert dialect.locate(raw)[0] == keys


def test_other_methods_are_not_its() -> None:
    assert (
        dialect_named(ID).locate({"quantization_config": {"quant_method": "x"}}) == ()
    )


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name[:21])
def test_real_configs_say_nothing_wrong(path: Path) -> None:
    raw = json.loads(path.read_text(encoding="utf-8"))
    (dialect,) = recognize(raw)
    assert dialect.id == ID
    place = Place("config.json", dialect.locate(raw)[0])
    document = parse(dialect, raw, place)
    assert dialect.lower(document, place, None).defects == ()


def test_the_least_config_promises_nothing() -> None:
    found = component(ID, {"quant_method": ID}, index_of(dense("a") | dense("b.norm")))
    assert found.weights == ()
    assert found.exhaustive
    assert [each.name for each in found.kept] == ["a.weight", "b.norm.weight"]
    assert component(ID, {"quant_method": ID}, index_of(packed("a"))).weights == ()


# Formats


def test_packed_integers() -> None:
    scheme = integer(config(), packed("a"))
    assert (scheme.bits, scheme.pack, scheme.code) == (4, "i32-lsb", "offset")
    assert scheme.spread == Spread(1, 32)
    assert scheme.zero.kind == "none"
    assert [extra.role for extra in scheme.extras] == ["shape"]


@pytest.mark.parametrize("bits", [3, 5, 6, 7])
@pytest.mark.parametrize("version", [None, "0.17.1", "0.18.0", "0.9"])
def test_the_shape_tells_the_packing(bits: int, version: str | None) -> None:
    said = config({**W4, "num_bits": bits}) | {"version": version}
    for whole in (False, True):
        words = -(-64 // (32 // bits)) if whole else -(-64 * bits // 32)
        tensors = packed("a") | {"a.weight_packed": ("I32", (8, words))}
        expected = "i32-whole" if whole else "i32-lsb"
        assert integer(said, tensors).pack == expected


@pytest.mark.parametrize(
    ("version", "pack"),
    [
        ("0.17.1", "i32-whole"),
        ("0.9.4", "i32-whole"),
        ("0.18.0", "i32-lsb"),
        ("1.0", "i32-lsb"),
        (None, "i32-lsb"),
        ("unknown", "i32-lsb"),
    ],
)
def test_else_the_version_tells_it(version: str | None, pack: str) -> None:
    rows = {"num_bits": 3, "strategy": "channel"}
    tensors = packed("a", bits=3, group=64)
    assert integer(config(rows) | {"version": version}, tensors).pack == pack
    # 35 codes of 3 bits fill four words either way
    groups = {"num_bits": 3, "group_size": 35, "strategy": "group"}
    tensors = packed("a", bits=3, width=35, group=35)
    assert integer(config(groups) | {"version": version}, tensors).pack == pack


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_other_widths_are_packed_alike(bits: int) -> None:
    said = config({**W4, "num_bits": bits}) | {"version": "0.9.4"}
    assert integer(said, packed("a", bits=bits)).pack == "i32-lsb"


@pytest.mark.parametrize(
    ("strategy", "pack", "dtypes"),
    [
        ({"group_size": 32}, "i32-lsb-stacked", ("I32",)),
        ({"strategy": "channel"}, "i32-lsb-stacked", ("I32",)),
        ({"strategy": "tensor"}, "", ("I8",)),
    ],
)
def test_zero_points(strategy: Config, pack: str, dtypes: tuple[str, ...]) -> None:
    said = config({"num_bits": 4, "symmetric": False, **strategy})
    scheme = integer(said, packed("a"))
    assert (scheme.zero.kind, scheme.zero.pack) == ("code", pack)
    assert scheme.zero.dtypes == dtypes
    assert scheme.zero.signed == bool(pack)


def test_zero_points_of_old_words() -> None:
    said = config({"num_bits": 3, "group_size": 32, "symmetric": False})
    tensors = packed("a") | {"a.weight_packed": ("I32", (8, 7))}
    scheme = integer(said, tensors)
    assert scheme.zero.pack == "i32-whole-stacked"
    ((_, _, shape),) = (p for p in scheme.parts((8, 64)) if p[0] == "zeros")
    assert shape == (1, 2)


def test_bytes() -> None:
    said = config({"symmetric": False, "strategy": "channel"}, stored="int-quantized")
    tensors = floats("a") | {"a.weight": ("I8", (8, 64))}
    scheme = integer(said, tensors)
    assert (scheme.pack, scheme.code, scheme.zero.dtypes) == ("i8", "signed", ("I8",))
    assert scheme.spread == Spread(1, 0)


def test_sixteen_bits_are_measured() -> None:
    said = config({"num_bits": 12, "strategy": "channel"}, stored="naive-quantized")
    tensors = floats("a") | {"a.weight": ("I16", (8, 64))}
    scheme = only_scheme(said, tensors)
    assert isinstance(scheme, Opaque)
    assert scheme.logical((8, 64)) == (8, 64)


@pytest.mark.parametrize(
    ("args", "scale", "spread"),
    [
        ({}, (1,), Spread(0, 0, "one")),
        ({}, (), Spread(0, 0, "scalar")),
        ({"strategy": "channel"}, (8, 1), Spread(1, 0)),
        ({"strategy": "group", "group_size": 32}, (8, 2), Spread(1, 32)),
        (
            {"strategy": "block", "block_structure": [4, 32]},
            (2, 2),
            Spread(4, 32),
        ),
        (
            {"strategy": "block", "block_structure": "128x32"},
            (1, 2),
            Spread(128, 32),
        ),
    ],
)
def test_fp8(args: Config, scale: Shape, spread: Spread) -> None:
    said = config({"type": "float", **args}, stored="float-quantized")
    scheme = scaled(said, floats("a", scale=scale))
    assert scheme.spread == spread
    assert (scheme.element, scheme.rounds) == ("e4m3", "scale")
    assert {r: s for r, _, s in scheme.parts((8, 64))}["scales"] == scale


def test_nvfp4_divides_by_its_global_scale() -> None:
    scheme = scaled(
        config(NVFP4, stored="nvfp4-pack-quantized"),
        {"a.weight_packed": ("U8", (8, 32)), "a.weight_scale": ("F8_E4M3", (8, 4))},
    )
    assert (scheme.global_scale, scheme.global_shape) == ("divide", (1,))
    assert (scheme.element, scheme.scale_format) == ("e2m1", "e4m3")


@pytest.mark.parametrize(
    ("bits", "stored", "pack"),
    [
        (4, "mxfp4-pack-quantized", "u8-nibbles"),
        (6, "mxfp6-pack-quantized", "u8-lsb"),
        (8, "mxfp8-quantized", "f8-e4m3"),
    ],
)
def test_powers_of_two(bits: int, stored: str, pack: str) -> None:
    args = {"num_bits": bits, "type": "float", "group_size": 32}
    tensors: Tensors = {
        "a.weight_packed": ("U8", (8, 8 * bits)),
        "a.weight_scale": ("U8", (8, 2)),
    }
    if bits == 8:
        tensors = floats("a") | {"a.weight_scale": ("U8", (8, 2))}
    scheme = scaled(config(args, stored=stored), tensors)
    assert (scheme.pack, scheme.scale_format) == (pack, "e8m0")
    assert scheme.logical(next(iter(tensors.values()))[1]) == (8, 64)


@pytest.mark.parametrize(
    ("inputs", "roles"),
    [
        (None, []),
        ({"strategy": "token", "dynamic": True}, []),
        ({}, [("input_scale", (1,))]),
        ({"symmetric": False}, [("input_scale", (1,)), ("input_zero_point", (1,))]),
        ({"strategy": "attn_head"}, [("input_scale", None)]),
        (
            {**NVFP4, "dynamic": "local"},
            [("input_global_scale", (1,))],
        ),
    ],
)
def test_parts_of_inputs(inputs: Config | None, roles: list[Any]) -> None:
    said = config(FP8, stored="float-quantized")
    said["config_groups"]["group_0"]["input_activations"] = inputs
    scheme = scaled(said, floats("a"))
    assert [(extra.role, extra.shape) for extra in scheme.extras] == roles
    assert scheme.optional == ()


def test_a_scale_of_inputs_may_be_a_scalar() -> None:
    said = config(FP8, stored="float-quantized")
    said["config_groups"]["group_0"]["input_activations"] = {}
    tensors = floats("a") | {"a.input_scale": ("F32", ())}
    assert [extra.shape for extra in scaled(said, tensors).extras] == [()]


def test_formats_are_inferred_where_nothing_says_them() -> None:
    said = config()
    for stored in (None, "fakequant", "mixed-precision"):
        said["format"] = stored
        assert integer(said, packed("a")).pack == "i32-lsb"


def test_groups_have_formats_of_their_own() -> None:
    said = {
        "format": "mixed-precision",
        "config_groups": {
            "a": {
                "targets": ["re:.*attn.*"],
                "weights": FP8,
                "format": "naive-quantized",
            },
            "b": {"targets": ["Linear"], "weights": W4, "format": "pack-quantized"},
        },
    }
    index = index_of(floats("l.0.attn.q") | packed("l.0.mlp.up"))
    found = component(ID, said, index)
    assert {w.name: (w.scheme.kind, w.pointer, w.names) for w in found.weights} == {
        "l.0.attn.q.weight": ("scaled", "/config_groups/a/targets/0", SCALED.names),
        "l.0.mlp.up.weight": ("integer", "/config_groups/b/targets/0", PACKED.names),
    }


def test_what_is_stored_in_another_way_is_not_declared() -> None:
    index = index_of(floats("a") | packed("b"))
    found = component(ID, config(), index)
    assert [weight.name for weight in found.weights] == ["b.weight"]


def test_an_order_of_groups() -> None:
    said = config({**W4, "actorder": "group"}) | {"version": "0.12.2"}
    lowered = lower(ID, said, index_of(packed("a")))
    ((_, weight),) = lowered.manifest.weights()
    assert isinstance(weight.scheme, Integer)
    assert weight.scheme.order == "listed"
    ((_, severity),) = reasons(said)
    assert severity is Severity.NOTE
    for args in ({"actorder": "weight"}, {"actorder": "static"}, {"actorder": None}):
        assert integer(config({**W4, **args}), packed("a")).order == "sequential"


# Targets and what is ignored


def test_exact_targets_before_expressions_before_classes() -> None:
    widths = {"Linear": 2, "re:l.*": 3, "re:l.0.*": 5, "l.0.up": 8}
    said = {
        "config_groups": {
            f"group_{bits}": {"targets": [text], "weights": {**W4, "num_bits": bits}}
            for text, bits in widths.items()
        }
    }
    index = index_of(
        packed("l.0.up", bits=8) | packed("l.0.down", bits=3) | packed("x", bits=2)
    )
    found = component(ID, said, index)
    # sorted by text, "re:l.*" comes before "re:l.0.*"
    assert {w.name: w.scheme.bits for w in found.weights} == {
        "l.0.up.weight": 8,
        "l.0.down.weight": 3,
        "x.weight": 2,
    }


def test_expressions_match_from_the_start_of_a_module() -> None:
    said = config(W4, "re:l[.]0", "up")
    found = component(ID, said | {}, index_of(packed("l.0.up", "xl.0", "up", "upper")))
    assert [w.name for w in found.weights] == ["l.0.up.weight", "up.weight"]


def test_embeddings_are_of_their_own_class() -> None:
    said = {
        "config_groups": {
            "a": {"targets": ["Embedding"], "weights": {**W4, "num_bits": 8}},
            "b": {"targets": ["Linear"], "weights": W4},
        }
    }
    index = index_of(packed("embed_tokens", bits=8) | packed("embed_tokens.up"))
    found = component(ID, said, index)
    assert [w.scheme.bits for w in found.weights] == [8, 4]


@pytest.mark.parametrize("target", ["Linear", "LinearBase"])
def test_every_linear_layer(target: str) -> None:
    found = component(ID, config(W4, target), index_of(packed("a")))
    assert found.every_linear == (target == "Linear")
    assert [w.name for w in found.weights] == ["a.weight"]


def test_presets() -> None:
    said = {
        "format": "mixed-precision",
        "config_groups": {"w4a16": ["Linear"], "FP8_DYNAMIC": ["re:.*attn"]},
    }
    found = component(ID, said, index_of(packed("up", group=64) | floats("attn")))
    assert [(w.scheme.kind, w.pointer) for w in found.weights] == [
        ("integer", "/config_groups/w4a16/0"),
        ("scaled", "/config_groups/FP8_DYNAMIC/0"),
    ]
    (defect,) = lower(ID, {"config_groups": {"mine": ["Linear"]}}).defects
    assert defect.kind is DefectKind.INVALID_VALUE


def test_what_is_ignored() -> None:
    said = config() | {
        "ignore": ["lm_head", "re:.*vision", "a", "gone", "b", "LlamaRMSNorm"]
    }
    index = index_of(packed("l.up") | dense("a", "b.gate", "my.vision.up"))
    found = component(ID, said, index)
    assert [each.name for each in found.kept] == ["my.vision.up.weight", "a.weight"]
    assert {e.pattern.text: e.unused for e in found.entries} == {
        "lm_head": Severity.NOTE,
        "re:.*vision": Severity.NOTE,
        "a": Severity.WARNING,
        "gone": Severity.ERROR,
        "b": Severity.WARNING,
    }
    assert {e.reader for e in found.entries} == {"compressed-tensors"}
    assert all(e.also_read == ("vllm-compressed-tensors",) for e in found.entries)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("model.visual.blocks.0.attn.qkv", Severity.WARNING),  # without `model.`
        ("visual.blocks.0.attn.q", Severity.ERROR),
        ("visual.merger.proj", Severity.WARNING),
        ("visual.merger.fc", Severity.ERROR),
        ("visual.blocks.0", Severity.WARNING),
        ("visual.block", Severity.ERROR),
        ("model.embed_tokens", Severity.NOTE),
    ],
)
def test_a_dead_name_is_as_bad_as_it_is_unknown(text: str, severity: Severity) -> None:
    index = index_of(dense("visual.blocks.0.attn.qkv", "model.visual.merger.proj"))
    (entry,) = component(ID, config() | {"ignore": [text]}, index).entries
    assert entry.matches == ()
    assert entry.unused is severity


def test_a_target_of_two_groups_is_the_later_one_s() -> None:
    said = {
        "config_groups": {
            "a": {"targets": ["Linear"], "weights": W4},
            "b": {"targets": ["Linear"], "weights": {**W4, "num_bits": 8}},
        }
    }
    lowered = lower(ID, said, index_of(packed("x", bits=8)))
    ((_, weight),) = lowered.manifest.weights()
    assert weight.scheme.bits == 8
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.CONTRADICTION
    assert defect.problem.severity is Severity.WARNING


# What cannot be right


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ({"strategy": "group"}, "group_size"),
        ({"strategy": "group", "group_size": -1}, "group_size"),
        ({"group_size": 0}, "group_size"),
        ({"strategy": "channel", "group_size": 64}, "strategy"),
        ({"strategy": "block"}, "block_structure"),
        ({"block_structure": [1, 2]}, "block_structure"),
        ({"strategy": "attn_head"}, "strategy"),
        ({**W4, "num_bits": 9}, "num_bits"),
        ({**W4, "type": "float"}, "num_bits"),
    ],
)
def test_impossible_weights(args: Config, key: str) -> None:
    found = reasons(config(args))
    assert (f"/config_groups/group_0/weights/{key}", None) in found


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        ({"strategy": "token"}, ["dynamic"]),
        ({"strategy": "channel", "dynamic": True}, ["dynamic"]),
        ({"dynamic": "local"}, ["dynamic"]),
        ({"strategy": "token", "dynamic": True}, []),
        ({**NVFP4, "dynamic": "local"}, []),
    ],
)
def test_impossible_activations(args: Config, keys: list[str]) -> None:
    said = config()
    said["config_groups"]["group_0"]["input_activations"] = args
    start = "/config_groups/group_0/input_activations/"
    assert [pointer for pointer, _ in reasons(said)] == [start + key for key in keys]


@pytest.mark.parametrize(
    ("stored", "args", "key"),
    [
        ("nvfp4-pack-quantized", {**NVFP4, "group_size": 32}, "group_size"),
        ("mxfp4-pack-quantized", W4, "num_bits"),
        ("mxfp6-pack-quantized", FP8, "num_bits"),
        ("int-quantized", FP8, "type"),
        ("float-quantized", W4, "type"),
        ("float-quantized", {**FP8, "num_bits": 6}, "num_bits"),
        ("naive-quantized", {"num_bits": 32}, "num_bits"),
    ],
)
def test_formats_that_cannot_store_it(stored: str, args: Config, key: str) -> None:
    found = reasons(config(args, stored=stored))
    assert found == [(f"/config_groups/group_0/weights/{key}", None)]


def test_orders_that_new_versions_refuse() -> None:
    said = config({**W4, "actorder": True})
    assert reasons(said | {"version": "0.18.0"})[0][1] is Severity.NOTE
    assert reasons(said | {"version": "0.19.0"})[0][1] is None


def test_unknown_formats() -> None:
    assert reasons(config(stored="marlin")) == [("/format", None)]
    said = {"sparsity_config": {"format": "sparse-new"}}
    assert reasons(said) == [("/sparsity_config/format", None)]
    mixed = config()
    mixed["config_groups"]["group_0"]["format"] = "mixed-precision"
    assert reasons(mixed)[0] == ("/config_groups/group_0/format", None)


def test_two_formats() -> None:
    said = config(FP8, stored="pack-quantized")
    said["config_groups"]["group_0"]["format"] = "float-quantized"
    (defect,) = lower(ID, said).defects
    assert defect.kind is DefectKind.CONTRADICTION
    assert defect.problem.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (config({"bits": 4}), DefectKind.UNKNOWN_KEY),
        (config({"num_bits": "4"}), DefectKind.INVALID_VALUE),
        (config({"strategy": "row"}), DefectKind.INVALID_VALUE),
        ({"config_groups": {"a": {"weights": W4}}}, DefectKind.MISSING_KEY),
        ({"config_groups": {"a": 4}}, DefectKind.INVALID_VALUE),
    ],
)
def test_what_the_library_refuses_to_read(said: Config, kind: DefectKind) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        lower(ID, said)
    assert {defect.kind for defect in raised.value.defects} == {kind}


def test_unknown_keys_at_the_top_are_ignored() -> None:
    (defect,) = lower(ID, config() | {"ignores": []}).defects
    assert defect.kind is DefectKind.UNKNOWN_KEY
    assert defect.problem.severity is Severity.WARNING


# Caches, pruned weights, dense checkpoints


@pytest.mark.parametrize(
    ("scheme", "stored", "count"),
    [
        ({"type": "float"}, {}, 1),
        ({"type": "float"}, {"self_attn.k_scale": ("BF16", (1,))}, 0),
        ({"type": "float"}, {"k_proj.k_scale": ("F32", ())}, 0),
        ({"type": "float"}, {"a.v_proj.output_scale": ("F32", (1,))}, 0),
        ({"type": "float"}, {"self_attn.v_scale": ("F32", (8,))}, 1),
        ({"strategy": "attn_head"}, {"self_attn.v_scale": ("F32", (8, 1, 1))}, 0),
        ({"strategy": "attn_head"}, {"self_attn.v_scale": ("F32", (1,))}, 1),
        ({"dynamic": True}, {}, 0),
        (None, {}, 0),
    ],
)
def test_scales_of_the_cache(
    scheme: Config | None, stored: dict[str, tuple[str, Shape]], count: int
) -> None:
    said = config() | {"kv_cache_scheme": scheme}
    lowered = lower(ID, said, index_of(packed("a") | stored))
    assert len(of_kind(lowered, DefectKind.CONTRADICTION)) == count


@pytest.mark.parametrize("stored", ["dense", "fakequant", None])
def test_a_dense_checkpoint_is_kept_as_it_is(stored: str | None) -> None:
    said = {"format": stored, "config_groups": {}, "kv_cache_scheme": {"dynamic": True}}
    found = component(ID, said, index_of(dense("a")))
    assert found.exhaustive
    assert [each.name for each in found.kept] == ["a.weight"]


@pytest.mark.parametrize(
    ("said", "promises"),
    [
        ({}, True),
        ({"format": None}, False),
        ({"format": "fakequant", "quantization_status": "frozen"}, False),
        ({"format": None, "quantization_status": "compressed"}, True),
        ({"format": "dense", "quantization_status": "compressed"}, False),
    ],
)
def test_what_was_to_be_packed_and_was_not(said: Config, promises: bool) -> None:  # noqa: FBT001 - a parameter of the test
    found = component(ID, config() | said, index_of(dense("a")))
    assert found.exhaustive != promises
    assert bool(found.kept) != promises


@pytest.mark.parametrize(
    ("stored", "codes"),
    [("sparse-24-bitmask", (8, 32)), ("sparse-bitmask", (77,))],
)
def test_pruned_weights_are_measured(stored: str, codes: Shape) -> None:
    said = {"sparsity_config": {"format": stored, "sparsity_structure": "2:4"}}
    index = index_of({"a.compressed": ("BF16", codes), "a.bitmask": ("U8", (8, 8))})
    (weight,) = component(ID, said, index).weights
    assert isinstance(weight.scheme, Opaque)
    assert weight.pointer == "/sparsity_config"
    parts = {part.name: part.shape for part in weight.parts((8, 64))}
    assert parts["a.bitmask"] == (8, 8)
    assert parts["a.shape"] == (2, 1)
    if stored == "sparse-24-bitmask":
        assert weight.scheme.logical(codes) == (8, 64)
        assert parts["a.compressed"] == codes
    else:
        assert parts["a.row_offsets"] == (8,)


def test_marlin_is_recognised() -> None:
    index = index_of({"a.weight_packed": ("I32", (4, 64)), "a.meta": ("I16", (8, 8))})
    scheme = component(ID, config(stored="marlin-24"), index).weights[0].scheme
    assert isinstance(scheme, Opaque)
    assert (scheme.format, scheme.bits, scheme.group_size) == ("marlin-24", 4, 32)


# Writing


def test_emitted_configs() -> None:
    said = config() | {"ignore": ["b"]}
    said["config_groups"]["group_0"]["format"] = "pack-quantized"
    index = index_of(packed("a") | dense("b"))
    written = emit_again(ID, lower(ID, said, index))
    assert written == {
        "quant_method": ID,
        "quantization_status": "compressed",
        "format": "pack-quantized",
        "ignore": ["b"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {
                    "num_bits": 4,
                    "type": "int",
                    "symmetric": True,
                    "strategy": "group",
                    "group_size": 32,
                },
                "input_activations": None,
                "output_activations": None,
                "format": "pack-quantized",
            }
        },
    }


NIBBLES: Tensors = {
    "a.weight_packed": ("U8", (8, 32)),
    "a.weight_scale": ("F8_E4M3", (8, 4)),
}
LOCAL: Config = {"input_activations": {**NVFP4, "dynamic": "local"}}


@pytest.mark.parametrize(
    ("args", "more", "stored", "tensors"),
    [
        ({**W4, "symmetric": False}, {}, "pack-quantized", packed("a")),
        ({**W4, "actorder": "dynamic"}, {}, "pack-quantized", packed("a")),
        (NVFP4, LOCAL, "nvfp4-pack-quantized", NIBBLES),
        (
            {"num_bits": 4, "type": "float", "group_size": 32},
            {},
            "mxfp4-pack-quantized",
            NIBBLES,
        ),
        ({"type": "float"}, {"input_activations": {}}, "float-quantized", floats("a")),
        (
            FP8,
            {"output_activations": {"symmetric": False}},
            "naive-quantized",
            floats("a"),
        ),
        (
            {"type": "float", "strategy": "block", "block_structure": [4, 32]},
            {},
            "float-quantized",
            floats("a"),
        ),
        (
            {"strategy": "channel"},
            {"input_activations": {}},
            "int-quantized",
            floats("a") | {"a.weight": ("I8", (8, 64))},
        ),
    ],
)
def test_what_is_written_means_the_same(
    args: Config, more: Config, stored: str, tensors: Tensors
) -> None:
    said = config(args, stored=stored)
    said["config_groups"]["group_0"] |= more
    lowered = lower(ID, said, index_of(tensors))
    ((_, weight),) = lowered.manifest.weights()
    again = lower(ID, emit_again(ID, lowered), index_of(tensors))
    ((_, other),) = again.manifest.weights()
    assert other.scheme == weight.scheme


def test_pruned_weights_are_written() -> None:
    said = {"sparsity_config": {"format": "sparse-bitmask"}}
    tensors: Tensors = {"a.compressed": ("BF16", (9,)), "a.bitmask": ("U8", (8, 8))}
    written = emit_again(ID, lower(ID, said, index_of(tensors | dense("b"))))
    assert written["sparsity_config"] == {"format": "sparse-bitmask"}
    (weight,) = component(ID, written, index_of(tensors)).weights
    mixed = Weight("b.weight", sparse("sparse-24-bitmask"), "", names=weight.names)
    manifest = Manifest("made", components=(Component("", (weight, mixed)),))
    with pytest.raises(EmitError, match="one format of pruned weights"):
        dialect_named(ID).emit(manifest)


def test_several_schemes_are_several_groups() -> None:
    said = {
        "format": "mixed-precision",
        "config_groups": {
            "a": {"targets": ["re:Odd$"], "weights": FP8, "input_activations": {}},
            "b": {"targets": ["Linear"], "weights": {**W4, "num_bits": 3}},
        },
    }
    words = {"x.weight_packed": ("I32", (8, 7)), "y.weight_packed": ("I32", (8, 7))}
    index = index_of(packed("x", "y") | words | floats("Odd"))
    lowered = lower(ID, said, index)
    written = emit_again(ID, lowered)
    assert written["format"] == "mixed-precision"
    assert written["version"] == "0.17.1"
    assert written["config_groups"]["group_1"]["targets"] == ["re:Odd$"]
    again = lower(ID, written, index)
    assert [w.scheme for _, w in again.manifest.weights()] == [
        w.scheme for _, w in lowered.manifest.weights()
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        Manifest("made", components=(Component("a"), Component("b"))),
        Manifest(
            "made",
            components=(
                Component(
                    "", (Weight("a.weight", Affine(4, 64, ("F16",), "u32-lsb"), ""),)
                ),
            ),
        ),
        Manifest(
            "made",
            components=(
                Component(
                    "",
                    (
                        Weight(
                            "a.weight",
                            Scaled(
                                "e5m2",
                                "f8-e5m2",
                                Spread(1, 0),
                                ("F32",),
                                "float",
                                "none",
                                "scale",
                            ),
                            "",
                            names=SCALED.names,
                        ),
                    ),
                ),
            ),
        ),
    ],
    ids=["two models", "of MLX", "e5m2"],
)
def test_what_it_has_no_words_for(manifest: Manifest) -> None:
    with pytest.raises(EmitError, match="compressed-tensors"):
        dialect_named(ID).emit(manifest)


def test_parts_of_other_names_cannot_be_said() -> None:
    lowered = lower(ID, config(), index_of(packed("a")))
    ((_, weight),) = lowered.manifest.weights()
    other = Weight(weight.name, weight.scheme, "", names=SCALED.names)
    with pytest.raises(EmitError, match="weight_packed"):
        dialect_named(ID).emit(Manifest("made", components=(Component("", (other,)),)))


@pytest.mark.parametrize(
    ("said", "strategy"),
    [
        ({}, "tensor"),
        ({"group_size": None}, "tensor"),
        ({"group_size": -1}, "channel"),
        ({"group_size": 32}, "group"),
        ({"group_size": 16, "strategy": "tensor_group"}, "tensor_group"),
    ],
)
def test_strategies_are_inferred(said: Config, strategy: str) -> None:
    assert QuantizationArgs.model_validate(said).spread == strategy
