"""The configs that the project exists for: every fact about them is an assertion.

Each fact is proven of a config that this repository builds, and of the real file where
that is at hand.
"""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry
from support import founding

from qmanifest.check import check
from qmanifest.checkpoint import open_config
from qmanifest.dialects import dialect_named, recognize
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse
from qmanifest.findings import Severity
from qmanifest.manifest import from_json, to_json
from qmanifest.patterns import fold, match, read_entry
from qmanifest.schema import schema
from qmanifest.sizes import sizes_of
from qmanifest.tensors import TensorIndex, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Manifest

Config = dict[str, Any]
SEEDS: Final = Path(__file__).parents[1].parent / "shared" / "seeds"
FILES: Final = {
    "tensor-map": SEEDS / "tensor_map.quant_config.json",
    "q4-lists": SEEDS / "q4_lists.quant_config.json",
}
BUILT: Final[dict[str, Callable[[], Config]]] = {
    "tensor-map": founding.tensor_map,
    "q4-lists": founding.q4_lists,
}
SOURCES: Final = ("built", "real")


def config_of(dialect: str, source: str) -> Config:
    if source == "built":
        return BUILT[dialect]()
    if not FILES[dialect].exists():
        pytest.skip("the real configs are not here")
    config: Config = json.loads(FILES[dialect].read_bytes())
    return config


@pytest.fixture(params=SOURCES)
def tensor_map(request: pytest.FixtureRequest) -> Config:
    return config_of("tensor-map", request.param)


@pytest.fixture(params=SOURCES)
def q4_lists(request: pytest.FixtureRequest) -> Config:
    return config_of("q4-lists", request.param)


@pytest.fixture(
    params=[(dialect, source) for dialect in FILES for source in SOURCES],
    ids="-".join,
)
def any_config(request: pytest.FixtureRequest) -> tuple[str, Config]:
    dialect, source = request.param
    return dialect, config_of(dialect, source)


def opened(config: Config, folder: Path) -> Checkpoint:
    path = folder / "quant_config.json"
    path.write_text(json.dumps(config))
    return open_config(path)


def lowered(dialect_id: str, config: Config) -> Manifest:
    dialect = dialect_named(dialect_id)
    document = parse(dialect, config, Place("q.json"))
    manifest: Manifest = dialect.lower(document, Place("q.json"), None).manifest
    return manifest


@pytest.mark.parametrize("dialect", FILES)
def test_built_configs_name_what_the_real_ones_do(dialect: str) -> None:
    real, built = config_of(dialect, "real"), BUILT[dialect]()
    for prose in ("scheme", "scan"):
        assert (real.pop(prose, None) is None) == (built.pop(prose, None) is None)
    assert real == built


def test_tensor_map_has_112_entries_and_210_kept_and_they_are_disjoint(
    tensor_map: Config,
) -> None:
    (component,) = lowered("tensor-map", tensor_map).components
    assert len(component.weights) == len(tensor_map["tensors"]) == 112
    assert len(component.kept) == len(tensor_map["kept_16bit"]) == 210
    kept = {each.name for each in component.kept}
    assert kept == set(tensor_map["kept_16bit"])
    assert kept.isdisjoint(weight.name for weight in component.weights)
    assert component.exhaustive


def test_tensor_map_takes_exactly_9_bits_per_weight(tensor_map: Config) -> None:
    manifest = lowered("tensor-map", tensor_map)
    sizes = sizes_of(manifest)
    assert sizes.quantized_parameters == 1_916_772_352
    assert sizes.total == 2_156_368_896
    assert sizes.bits_per_weight == Fraction(9)
    schemes = {str(weight.scheme) for _, weight in manifest.weights()}
    assert schemes == {"affine(bits=8, group=32, scale=F16|BF16, pack=u32-lsb)"}


def test_tensor_map_counts_are_those_of_its_scan(tensor_map: Config) -> None:
    kept, scan = tensor_map["kept_16bit"], tensor_map["scan"]
    quantized = {name.partition(".")[0] for name in tensor_map["tensors"]}
    backbone = [name for name in kept if name.partition(".")[0] in quantized]
    depth = set(kept) - set(backbone)
    assert len(backbone) == scan["keep_backbone"] == 2
    assert len(depth) == 208 < scan["keep_depth"]


def test_tensor_map_scan_is_named_after_another_group(
    tensor_map: Config, tmp_path: Path
) -> None:
    (finding,) = check(opened(tensor_map, tmp_path)).findings
    assert (finding.code, finding.severity) == ("QM901", Severity.NOTE)
    assert finding.at[0].pointer == "/scan/file"
    assert (finding.expected, finding.actual) == ("8b32", "8b64")


def test_tensor_map_with_another_count_is_news(
    tensor_map: Config, tmp_path: Path
) -> None:
    tensor_map["scan"]["keep_backbone"] = 4  # 3 could be `in_proj` too
    findings = check(opened(tensor_map, tmp_path)).findings
    assert Counter(each.code for each in findings) == {"QM109": 1, "QM901": 1}
    assert findings[0].severity is Severity.WARNING


def test_q4_lists_name_24_layers_of_6_matrices_twice(q4_lists: Config) -> None:
    for key in ("emb_q4", "rr_q4"):
        names = q4_lists[key]
        assert len(names) == len(set(names)) == 144 == 24 * 6
        layers = Counter(
            name.partition("layer.")[2].partition(".")[0] for name in names
        )
        assert layers == {str(layer): 6 for layer in range(24)}
        matrices = Counter(
            name.partition("layer.")[2].partition(".")[2] for name in names
        )
        assert set(matrices.values()) == {24}


def test_q4_lists_protect_nothing_that_they_quantize(q4_lists: Config) -> None:
    names = [*q4_lists["emb_q4"], *q4_lists["rr_q4"]]
    assert not [n for n in names for part in q4_lists["protected_fp16"] if part in n]


def test_q4_lists_lower_to_two_components(q4_lists: Config, tmp_path: Path) -> None:
    checkpoint = opened(q4_lists, tmp_path)
    assert checkpoint.manifest is not None
    components = checkpoint.manifest.components
    assert [each.name for each in components] == ["emb", "rr"]
    assert [len(each.weights) for each in components] == [144, 144]
    schemes = {str(weight.scheme) for _, weight in checkpoint.manifest.weights()}
    assert schemes == {"affine(bits=4, group=64, scale=F16|BF16, pack=u32-lsb)"}
    assert all(weight.shape is None for _, weight in checkpoint.manifest.weights())
    assert check(checkpoint).findings == ()


def test_one_dialect_recognises_it(any_config: tuple[str, Config]) -> None:
    dialect, config = any_config
    assert [each.id for each in recognize(config)] == [dialect]


def test_document_gives_back_the_file(any_config: tuple[str, Config]) -> None:
    dialect, config = any_config
    document = parse(dialect_named(dialect), config, Place())
    assert document.to_json() == config
    assert json.loads(json.dumps(document.to_json())) == config


def test_schema_accepts_it(any_config: tuple[str, Config]) -> None:
    dialect, config = any_config
    Draft202012Validator(schema(dialect), registry=Registry()).validate(config)
    plain = dialect_named(dialect).document.model_json_schema()
    Draft202012Validator.check_schema(plain)
    Draft202012Validator(plain, registry=Registry()).validate(config)


def test_manifest_json_loses_nothing(any_config: tuple[str, Config]) -> None:
    manifest = lowered(*any_config)
    text = to_json(manifest)
    assert from_json(text) == manifest
    assert to_json(from_json(text)) == text


def test_emitted_config_is_as_good(any_config: tuple[str, Config]) -> None:
    dialect_id, config = any_config
    manifest = lowered(dialect_id, config)
    again = dialect_named(dialect_id).emit(manifest).to_json()
    second = lowered(dialect_id, again)
    for before, after in zip(manifest.components, second.components, strict=True):
        assert [(w.name, w.scheme, w.shape) for w in before.weights] == [
            (w.name, w.scheme, w.shape) for w in after.weights
        ]
        assert {k.name for k in before.kept} == {k.name for k in after.kept}
    prose = {"scan", "scheme"}
    assert {k: v for k, v in again.items() if k not in prose} == {
        k: v for k, v in config.items() if k not in prose
    }


def lists_of(config: Config) -> dict[str, tuple[list[str], int]]:
    """Every list of names, and how few patterns are known to do."""
    if "tensors" in config:
        return {
            "kept_16bit": (config["kept_16bit"], 5),
            "tensors": (list(config["tensors"]), 6),
        }
    return {key: (config[key], 3) for key in ("emb_q4", "rr_q4")}


def test_lists_fold_to_few_patterns_and_back(any_config: tuple[str, Config]) -> None:
    lists = lists_of(any_config[1])
    universe = [name for names, _ in lists.values() for name in names]
    for names, few in lists.values():
        patterns = fold(names, universe)
        assert len(patterns) <= few
        matches = match([read_entry(text) for text in patterns], universe)
        found = {name for at in range(len(patterns)) for name in matches.of(at)}
        assert found == set(names)
        assert matches.dead == ()


def test_folded_config_says_the_same(tensor_map: Config) -> None:
    (before,) = lowered("tensor-map", tensor_map).components
    names = list(tensor_map["tensors"])
    everything = [*names, *tensor_map["kept_16bit"]]
    folded = tensor_map | {"kept_16bit": list(fold(tensor_map["kept_16bit"], names))}
    dialect = dialect_named("tensor-map")
    document = parse(dialect, folded, Place())
    index = TensorIndex(
        TensorInfo(name, "F16", (32, 32), 0, 2048, "m.safetensors")
        for name in everything
    )
    result = dialect.lower(document, Place(), {"": index})
    (after,) = result.manifest.components
    assert {each.name for each in after.kept} == {each.name for each in before.kept}
    assert {each.name for each in after.weights} == {
        each.name for each in before.weights
    }
    assert [defect.kind.value for defect in result.defects] == ["label"]
