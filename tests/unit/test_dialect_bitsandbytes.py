"""`bitsandbytes`: tables, nesting, storage, block sizes, and what the config says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from support.lowering import component, emit_again, index_of, lower, of_kind

from qmanifest.dialects import dialect_named
from qmanifest.dialects.bitsandbytes.schemes import INT8
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Codebook, Scheme

if TYPE_CHECKING:
    from qmanifest.tensors import Shape, TensorIndex

Config = dict[str, Any]
FOUR: Final[Config] = {
    "quant_method": "bitsandbytes",
    "load_in_4bit": True,
    "bnb_4bit_quant_type": "nf4",
}
EIGHT: Final[Config] = {"quant_method": "bitsandbytes", "load_in_8bit": True}


def four_bit(
    name: str = "a.weight",
    *,
    weights: int = 2048,
    block: int = 64,
    table: str = "nf4",
    nested: bool = False,
    storage: tuple[str, int] = ("U8", 1),
) -> TensorIndex:
    """Index a 4-bit weight."""
    dtype, itemsize = storage
    blocks = -(-weights // block)
    tensors: dict[str, tuple[str, Shape]] = {
        name: (dtype, (-(-weights // 2) // itemsize, 1)),
        f"{name}.absmax": ("U8" if nested else "F32", (blocks,)),
        f"{name}.quant_map": ("F32", (16,)),
        f"{name}.quant_state.bitsandbytes__{table}": ("U8", (90,)),
    }
    return index_of(tensors)


def scheme(index: TensorIndex, config: Config | None = None) -> Scheme:
    (weight,) = component("bitsandbytes", config or FOUR, index).weights
    return weight.scheme


def eight_bit() -> TensorIndex:
    return index_of(
        {
            "a.weight": ("I8", (32, 64)),
            "a.SCB": ("F32", (32,)),
            "a.weight_format": ("U8", ()),
        }
    )


def test_four_bits() -> None:
    assert scheme(four_bit()) == Codebook("nf4", 64, 0, "u8-flat-high")


def test_the_table_is_the_one_in_the_state_s_name() -> None:
    index = four_bit(table="fp4")
    lowered = lower("bitsandbytes", FOUR, index)
    ((weight,),) = (each.weights for each in lowered.manifest.components)
    assert weight.scheme == Codebook("fp4", 64, 0, "u8-flat-high")
    assert weight.part("quant_state").endswith("__fp4")
    (defect,) = lowered.defects
    assert defect.kind is DefectKind.CONTRADICTION
    assert defect.problem.severity is Severity.WARNING
    assert (defect.problem.expected, defect.problem.actual) == ("nf4", "fp4")


def test_a_config_without_a_table_contradicts_none() -> None:
    plain = {key: FOUR[key] for key in ("quant_method", "load_in_4bit")}
    assert scheme(four_bit(table="nf4"), plain) == scheme(four_bit())


@pytest.mark.parametrize("block", [32, 64, 128, 4096])
@pytest.mark.parametrize("weights", [8192, 31 * 129])
def test_blocks_show_by_their_number(block: int, weights: int) -> None:
    found = scheme(four_bit(weights=weights, block=block))
    assert found == Codebook("nf4", block, 0, "u8-flat-high")


def test_nested_magnitudes_are_bytes() -> None:
    config = FOUR | {"bnb_4bit_use_double_quant": True}
    found = scheme(four_bit(nested=True), config)
    assert found == Codebook("nf4", 64, 256, "u8-flat-high")


@pytest.mark.parametrize(
    ("storage", "dtype", "itemsize"),
    [("bfloat16", "BF16", 2), ("float16", "F16", 2), ("float32", "F32", 4)],
)
def test_bytes_may_be_viewed_as_floats(storage: str, dtype: str, itemsize: int) -> None:
    config = FOUR | {"bnb_4bit_quant_storage": storage}
    found = scheme(four_bit(storage=(dtype, itemsize)), config)
    assert found == Codebook("nf4", 64, 0, f"{dtype.lower()}-flat-high")


@pytest.mark.parametrize(
    ("key", "value"),
    [("bnb_4bit_use_double_quant", True), ("bnb_4bit_quant_storage", "float32")],
)
def test_keys_that_the_tensors_contradict(key: str, value: object) -> None:
    (defect,) = lower("bitsandbytes", FOUR | {key: value}, four_bit()).defects
    assert defect.problem.at[0].pointer == f"/{key}"
    assert defect.problem.severity is Severity.WARNING


def test_int8() -> None:
    assert scheme(eight_bit(), EIGHT) == INT8


@pytest.mark.parametrize(
    ("config", "index", "key"),
    [(EIGHT, four_bit(), "load_in_4bit"), (FOUR, eight_bit(), "load_in_8bit")],
)
def test_a_width_that_is_not_stored_is_an_error(
    config: Config, index: TensorIndex, key: str
) -> None:
    (defect,) = lower("bitsandbytes", config, index).defects
    assert defect.problem.at[0].pointer == f"/{key}"
    assert defect.problem.severity is None


def test_hidden_copies_are_twins() -> None:
    config = FOUR | {"_load_in_4bit": False, "_load_in_8bit": True}
    lowered = lower("bitsandbytes", config, four_bit())
    (defect,) = of_kind(lowered, DefectKind.TWINS_DISAGREE)
    assert (defect.problem.expected, defect.problem.actual) == (True, False)


def test_skipped_modules_match_as_in_transformers() -> None:
    tensors: dict[str, tuple[str, Shape]] = dict.fromkeys(
        ("m.0.router.weight", "m.0.xrouter.weight", "lm_head.weight", "m.head.weight"),
        ("F16", (4, 64)),
    )
    config = FOUR | {"llm_int8_skip_modules": ["router", "lm_head", "m.he"]}
    found = component("bitsandbytes", config, index_of(tensors))
    kept = {each.name for each in found.kept}
    assert kept == {"m.0.router.weight", "m.0.xrouter.weight", "lm_head.weight"}
    assert found.every_linear


def test_emit_writes_what_was_read() -> None:
    config = FOUR | {"bnb_4bit_use_double_quant": True}
    lowered = lower("bitsandbytes", config, four_bit(nested=True))
    again = emit_again("bitsandbytes", lowered)
    assert lower("bitsandbytes", again, four_bit(nested=True)).manifest == (
        lowered.manifest
    )


def test_emit_has_no_words_for_a_mix() -> None:
    mixed = (
        Weight("a.weight", Codebook("nf4", 64, 0, "u8-flat-high"), ""),
        Weight("b.weight", INT8, ""),
    )
    manifest = Manifest("bitsandbytes", None, (Component("", mixed),))
    with pytest.raises(EmitError, match="one scheme"):
        dialect_named("bitsandbytes").emit(manifest)
    with pytest.raises(EmitError, match="one model"):
        dialect_named("bitsandbytes").emit(Manifest("bitsandbytes"))
