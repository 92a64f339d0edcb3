"""Twins: what two config files of one checkpoint say, and where they differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.configs import CONFIGS, FOLDER

from qmanifest.dialects import dialect_named, recognize
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.twins import MOST, twins
from qmanifest.findings import DefectKind, Severity

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.findings import Defect

Config = dict[str, Any]
GPTQ: Final = {"bits": 4, "group_size": 128, "desc_act": False, "sym": True}


def compare(own: Config, file: str, other: Config) -> tuple[Defect, ...]:
    """Compare `config.json` with another file."""
    (dialect,) = recognize(own)
    place = Place("config.json", dialect.locate(own)[0])
    return twins(dialect, place, own, {file: other})


def gptq(**said: object) -> Config:
    return {"quantization_config": {"quant_method": "gptq", **GPTQ, **said}}


def modelopt(**said: object) -> Config:
    return {"quantization_config": {"quant_method": "modelopt", **said}}


def hf_quant_config(**said: object) -> Config:
    return {"producer": {"name": "modelopt"}, "quantization": said}


def places(found: tuple[Defect, ...]) -> list[tuple[str | None, str | None]]:
    return [tuple(at.pointer for at in each.problem.at) for each in found]  # type: ignore[misc] # two of each


@pytest.mark.parametrize(
    ("other", "pointers"),
    [
        (GPTQ, []),
        ({**GPTQ, "desc_act": None}, []),
        ({"bits": 4}, []),
        (
            {**GPTQ, "bits": 3, "desc_act": True},
            [
                ("/quantization_config/bits", "/bits"),
                ("/quantization_config/desc_act", "/desc_act"),
            ],
        ),
        ({**GPTQ, "sym": 1}, [("/quantization_config/sym", "/sym")]),
    ],
)
def test_keys_that_both_have(other: Config, pointers: list[tuple[str, str]]) -> None:
    found = compare(gptq(), "quantize_config.json", other)
    assert places(found) == pointers
    for each in found:
        assert each.kind is DefectKind.TWINS_DISAGREE
        assert each.problem.severity is None
        assert each.problem.at[1].file == "quantize_config.json"


def test_how_it_came_about_is_a_note() -> None:
    own = gptq(damp_percent=0.1, model_file_base_name="model")
    other = {**GPTQ, "damp_percent": 0.01, "model_file_base_name": "x"}
    found = compare(own, "quantize_config.json", other)
    assert [each.problem.severity for each in found] == [Severity.NOTE] * 2


@pytest.mark.parametrize(
    ("ours", "theirs", "count"),
    [
        ({"ignore": ["a", "b"]}, {"exclude_modules": ["b", "a"]}, 0),
        ({"ignore": ["a"]}, {"exclude_modules": ["a", "b"]}, 1),
        ({"ignore": [1]}, {"exclude_modules": ["1"]}, 1),
        ({"quant_algo": "fp8"}, {"quant_algo": "FP8"}, 0),
        ({"quant_algo": "FP8"}, {"quant_algo": "NVFP4"}, 1),
        (
            {"kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}},
            {"kv_cache_quant_algo": "FP8"},
            0,
        ),
        ({"kv_cache_scheme": "FP8"}, {"kv_cache_quant_algo": "FP8"}, 0),
        (
            {"kv_cache_scheme": {"num_bits": 8, "type": "int"}},
            {"kv_cache_quant_algo": "FP8"},
            1,
        ),
        (
            {"kv_cache_scheme": {"num_bits": [], "type": {}}},
            {"kv_cache_quant_algo": "FP8"},
            1,
        ),
    ],
)
def test_modelopt_s_two_vocabularies(ours: Config, theirs: Config, count: int) -> None:
    other = hf_quant_config(**{"quant_algo": None, **theirs})
    assert len(compare(modelopt(**ours), "hf_quant_config.json", other)) == count
    (dialect,) = recognize(other)
    place = Place("hf_quant_config.json", dialect.locate(other)[0])
    back = twins(dialect, place, other, {"config.json": modelopt(**ours)})
    assert len(back) == count


def test_fp8_that_modelopt_quantized_again() -> None:
    """The whole is of another dialect, and says of its experts the same."""
    layers = {"l.0.experts": {"quant_algo": "NVFP4", "group_size": 16}}
    mixed = {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    own = {"quantization_config": {"quant_method": "fp8", "ignore": ["x"], **mixed}}
    alike = hf_quant_config(exclude_modules=["x"], **mixed)
    assert compare(own, "hf_quant_config.json", alike) == ()
    other = hf_quant_config(exclude_modules=["y"], **mixed | {"quantized_layers": {}})
    assert places(compare(own, "hf_quant_config.json", other)) == [
        ("/quantization_config/ignore", "/quantization/exclude_modules"),
        ("/quantization_config/quantized_layers", "/quantization/quantized_layers"),
    ]


@pytest.mark.parametrize(
    "other",
    [{}, {"bits": 8, "quant_method": "awq"}, {"quantization": 3}, {"x": {"bits": 3}}],
)
def test_other_files_are_no_twins(other: Config) -> None:
    assert compare(gptq(), "other.json", other) == ()


def test_places_that_hold_no_document() -> None:
    dialect = dialect_named("gptq")
    place = Place("config.json", ("quantization_config",))
    own = {"quantization_config": 4}
    assert twins(dialect, place, own, {"quantize_config.json": GPTQ}) == ()


def test_differences_are_reported_up_to_a_number() -> None:
    numbers = {f"key{number}": number for number in range(MOST + 5)}
    others = dict.fromkeys(numbers, -1)
    own = modelopt(**numbers)
    found = compare(
        own, "hf_quant_config.json", hf_quant_config(quant_algo="FP8", **others)
    )
    assert len(found) == MOST


# Real pairs


def model_of(path: Path) -> str:
    """Name the model that a file is of."""
    name = path.name.partition(".")[2]
    return name.removesuffix("_hf_quant_config.json").removesuffix("_config.json")


PAIRS: Final = [
    (own, other)
    for own in CONFIGS
    for other in CONFIGS
    if own.name.endswith("_config.json") and "-hf_" not in own.name
    if "-hf_" in other.name and model_of(own) == model_of(other)
]
OF_ONE_NUMBER: Final[dict[str, list[str]]] = {
    "01": ["bits", "desc_act", "group_size"],
    "02": ["damp_percent", "desc_act", "group_size"],
    "03": [],
    "05": ["desc_act", "group_size"],
}
"""In what the GPTQ configs of one number differ; not all are of one model."""


def load(path: Path) -> Config:
    config: Config = json.loads(path.read_text(encoding="utf-8"))
    return config


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].name[:30])
def test_real_twins_of_modelopt_agree(pair: tuple[Path, Path]) -> None:
    own, other = map(load, pair)
    assert compare(own, "hf_quant_config.json", other) == ()


@pytest.mark.parametrize("number", OF_ONE_NUMBER if CONFIGS else ())
def test_real_configs_of_gptq(number: str) -> None:
    own = load(FOLDER / f"gptq_{number}.config.json")
    name = f"gptq-quantize_config_{number}.quantize_config.json"
    found = compare(own, "quantize_config.json", load(FOLDER / name))
    keys = [str(each.problem.at[1].pointer).removeprefix("/") for each in found]
    assert keys == OF_ONE_NUMBER[number]
