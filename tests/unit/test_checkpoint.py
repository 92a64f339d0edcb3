"""Opening: the config that counts, the components, and all that can be wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from qmanifest.check import check
from qmanifest.checkpoint import Checkpoint, open_checkpoint, open_config
from qmanifest.dialects import IDS
from qmanifest.errors import UnknownDialectError
from qmanifest.findings import DefectKind
from qmanifest.reading import limits
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

Config = dict[str, Any]
TABLE: Final = "a affine 4/64 4x64\nnorm.weight F16 64"
TENSOR_MAP: Final[Config] = {
    "bits": 4,
    "group_size": 64,
    "kept_16bit": ["norm.weight"],
    "tensors": {"a.weight": {"shape": [4, 64]}},
}
Q4_LISTS: Final[Config] = {
    "quant": "q4",
    "group": 64,
    "scheme": "",
    "protected_fp16": ["norm"],
    "emb_q4": ["a.weight"],
}
MLX: Final[Config] = {"quantization": {"bits": 4, "group_size": 64}, "hidden_size": 64}


def write(path: Path, config: object) -> Path:
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def kinds(checkpoint: Checkpoint) -> list[str]:
    return [defect.kind.value for defect in checkpoint.defects]


def names(checkpoint: Checkpoint) -> list[str]:
    assert checkpoint.manifest is not None
    return [weight.name for _, weight in checkpoint.manifest.weights()]


@pytest.mark.parametrize(
    "name", ["quant_config.json", "quantize_config.json", "quantization.json"]
)
def test_config_is_found_by_each_of_its_names(tmp_path: Path, name: str) -> None:
    write_checkpoint(tmp_path, TABLE, TENSOR_MAP, config_name=name)
    write(tmp_path / "config.json", {"hidden_size": 64})
    opened = open_checkpoint(tmp_path)
    assert opened.config_name == name
    assert opened.dialect is not None
    assert opened.dialect.id == "tensor-map"
    assert opened.model_config == {"hidden_size": 64}
    assert names(opened) == ["a.weight"]
    assert opened.defects == ()
    assert opened.complete
    assert not opened.config_only
    assert check(opened, deep=True).findings == ()


def test_a_model_config_counts_where_it_holds_a_block(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE, MLX, config_name="config.json")
    opened = open_checkpoint(tmp_path)
    assert opened.config_name == "config.json"
    assert opened.dialect is not None
    assert opened.dialect.id == "mlx"
    assert opened.model_config == MLX
    assert names(opened) == ["a.weight"]


def test_the_first_of_several_configs_counts(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE, TENSOR_MAP)
    write(tmp_path / "quantize_config.json", "broken")
    write(tmp_path / "config.json", MLX)
    opened = open_checkpoint(tmp_path)
    assert opened.config_name == "quant_config.json"
    assert opened.defects == ()


def test_a_config_that_is_named_counts_alone(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", TABLE, {"bad": 1})
    config = write(tmp_path / "elsewhere.json", TENSOR_MAP)
    opened = open_checkpoint(tmp_path / "c", config=config)
    assert opened.config_name == "elsewhere.json"
    assert names(opened) == ["a.weight"]
    assert opened.defects == ()


def test_one_file_with_the_config_beside_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE, TENSOR_MAP, file="any.safetensors")
    write_checkpoint(tmp_path, "other.weight F16 4x4", file="more.safetensors")
    opened = open_checkpoint(tmp_path / "any.safetensors")
    assert opened.root == tmp_path
    assert opened.stores[""].files == ("any.safetensors",)
    assert names(opened) == ["a.weight"]


def test_no_config_at_all(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE)
    write(tmp_path / "config.json", {"hidden_size": 64, "quantization": None})
    opened = open_checkpoint(tmp_path)
    assert (opened.config, opened.dialect, opened.manifest) == (None, None, None)
    assert opened.config_name is None
    assert opened.model_config == {"hidden_size": 64, "quantization": None}
    assert [store.files for store in opened.loose] == [("model.safetensors",)]
    assert list(opened.found()) == []
    assert [finding.code for finding in check(opened).findings] == ["QM106"]


def test_an_empty_folder(tmp_path: Path) -> None:
    opened = open_checkpoint(tmp_path)
    assert opened.all_stores == ()
    assert [finding.code for finding in check(opened).findings] == ["QM106"]


def test_a_folder_of_shards_and_their_index(tmp_path: Path) -> None:
    files = ("m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors")
    write_checkpoint(tmp_path, "a affine 4/64 4x64", TENSOR_MAP, file=files[0])
    write_checkpoint(tmp_path, "norm.weight F16 64", file=files[1])
    opened = open_checkpoint(tmp_path)
    assert opened.stores[""].files == files
    assert opened.complete
    (tmp_path / files[1]).unlink()
    assert not open_checkpoint(tmp_path).complete


def test_components_in_files_subfolders_and_elsewhere(tmp_path: Path) -> None:
    lists = {f"{name}_q4": ["a.weight"] for name in ("emb", "rr", "far", "lost")}
    config = {key: v for key, v in Q4_LISTS.items() if key != "emb_q4"} | lists
    write_checkpoint(tmp_path, TABLE, config, file="emb.safetensors")
    write_checkpoint(tmp_path / "rr", TABLE)
    far = write_checkpoint(tmp_path / "x" / "y", TABLE)
    opened = open_checkpoint(tmp_path, components={"far": far})
    assert {name: store.files for name, store in opened.stores.items()} == {
        "emb": ("emb.safetensors",),
        "rr": ("rr/model.safetensors",),
        "far": ("y/model.safetensors",),
    }
    assert [component.name for component, _ in opened.found()] == ["emb", "rr", "far"]
    assert opened.manifest is not None
    assert [len(component.weights) for component in opened.manifest.components] == [
        1
    ] * 4
    errors = [f for f in check(opened, deep=True).findings if f.severity == "error"]
    assert [(f.code, "'lost'" in f.message) for f in errors] == [("QM401", True)]


def test_a_component_by_its_tensors(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE, Q4_LISTS, file="whatever.safetensors")
    write_checkpoint(tmp_path, "b F16 4x4", file="other.safetensors")
    opened = open_checkpoint(tmp_path)
    assert opened.stores["emb"].files == ("whatever.safetensors",)
    assert [store.name for store in opened.loose] == ["other"]


def test_an_ambiguous_component(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE, Q4_LISTS, file="one.safetensors")
    write_checkpoint(tmp_path, TABLE, file="two.safetensors")
    opened = open_checkpoint(tmp_path)
    assert kinds(opened) == ["no-config"]
    assert opened.stores == {}
    assert "QM106" in {finding.code for finding in check(opened).findings}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "unreadable-json"),
        ("{", "unreadable-json"),
        ("[]", "unreadable-json"),
        ("null", "unreadable-json"),
        ('{"bits": 4, "bits": 8}', "duplicate-key"),
        ("{}", "no-config"),
        ('{"bits": 4}', "no-config"),
        ('{"tensors": {}}', "missing-key"),
        ('{"quant": 4}', "invalid-value"),
    ],
)
def test_broken_configs(tmp_path: Path, text: str, kind: str) -> None:
    write_checkpoint(tmp_path, TABLE)
    write(tmp_path / "quant_config.json", text)
    opened = open_checkpoint(tmp_path)
    assert opened.manifest is None
    assert kind in kinds(opened)
    assert len(opened.loose) == 1
    alone = open_config(tmp_path / "quant_config.json")
    assert kinds(alone) == kinds(opened)
    assert check(opened).findings
    assert check(alone).findings


def test_a_broken_model_config_is_news_where_no_other_config_is(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE)
    write(tmp_path / "config.json", "{")
    assert kinds(open_checkpoint(tmp_path)) == ["unreadable-json"]
    write(tmp_path / "quant_config.json", TENSOR_MAP)
    opened = open_checkpoint(tmp_path)
    assert opened.model_config == {}
    assert kinds(opened) == []


def test_a_config_with_a_byte_order_mark(tmp_path: Path) -> None:
    write(tmp_path / "quant_config.json", "\ufeff" + json.dumps(TENSOR_MAP))
    opened = open_config(tmp_path / "quant_config.json")
    assert names(opened) == ["a.weight"]


@pytest.mark.parametrize(
    ("config", "label"),
    [
        ({"quant_method": "own", "bits": 4}, "quant_method 'own'"),
        ({"quantization_config": {"quant_method": "q"}}, "quant_method 'q'"),
        ({"quantization": {"method": "hqq"}}, "method 'hqq'"),
        ({"quantization": {"group_size": 64}}, "keys 'group_size'"),
        ({"b": 1, "a": 2}, "keys 'a', 'b'"),
        ({"quant_method": 7}, "keys 'quant_method'"),
        ({}, "no keys"),
        ({"quant_method": "x" * 500}, "..."),
    ],
)
def test_a_config_that_no_dialect_recognises(
    tmp_path: Path, config: Config, label: str
) -> None:
    path = write(tmp_path / "quant_config.json", config)
    (defect,) = open_config(path).defects
    assert defect.kind is DefectKind.NO_CONFIG
    assert defect.problem.message.startswith(
        "no dialect recognises quant_config.json, which has "
    )
    assert defect.problem.message.endswith(label)
    assert len(defect.problem.message) < 200
    assert defect.problem.hint == (
        f"known dialects: {', '.join(IDS)}; force one with --dialect"
    )


def test_keys_of_two_dialects(tmp_path: Path) -> None:
    path = write(tmp_path / "quant_config.json", TENSOR_MAP | Q4_LISTS)
    (defect,) = open_config(path).defects
    assert defect.problem.message == (
        "quant_config.json has keys of tensor-map and q4-lists at once"
    )
    forced = open_config(path, dialect="q4-lists")
    assert forced.dialect is not None
    assert forced.dialect.id == "q4-lists"
    assert {defect.problem.at[0].pointer for defect in forced.defects} == {
        f"/{key}" for key in TENSOR_MAP
    }


def test_a_forced_dialect(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TABLE, {"bits": 4, "group_size": 64})
    assert kinds(open_checkpoint(tmp_path)) == ["no-config"]
    opened = open_checkpoint(tmp_path, dialect="mlx")
    assert names(opened) == ["a.weight"]
    assert opened.defects == ()
    for call in (open_checkpoint, open_config):
        with pytest.raises(UnknownDialectError, match="gguf"):
            call(tmp_path, dialect="gguf")


def test_an_unknown_dialect_is_refused_even_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(UnknownDialectError):
        open_checkpoint(tmp_path, dialect="none")


def test_twins_that_disagree(tmp_path: Path) -> None:
    block = {"bits": 4, "group_size": 64, "a": {"bits": 8}, "b": True}
    twin = {"bits": 8, "group_size": 64, "b": True, "c": False}
    model = {"quantization": block, "quantization_config": twin}
    opened = open_config(write(tmp_path / "config.json", model))
    assert kinds(opened) == ["twins-disagree"] * 3
    assert [defect.problem.message for defect in opened.defects] == [
        "/quantization/a is {'bits': 8} and its twin /quantization_config/a is absent",
        "/quantization/bits is 4 and its twin /quantization_config/bits is 8",
        "/quantization/c is absent and its twin /quantization_config/c is False",
    ]
    assert [place.pointer for place in opened.defects[1].problem.at] == [
        "/quantization/bits",
        "/quantization_config/bits",
    ]
    model["quantization_config"] = block
    assert open_config(write(tmp_path / "config.json", model)).defects == ()


def test_null_is_not_absent_in_a_twin(tmp_path: Path) -> None:
    block: Config = {"bits": 4, "group_size": 64}
    model = {"quantization": block, "quantization_config": block | {"a": None}}
    opened = open_config(write(tmp_path / "config.json", model))
    assert kinds(opened) == ["twins-disagree"]


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("key", ["kept_16bit", "tensors"])
def test_pattern_limit(tmp_path: Path, key: str, more: int) -> None:
    texts = [f"a.{number}.*" for number in range(limits.MAX_PATTERNS + more)]
    config = TENSOR_MAP | {
        "kept_16bit": texts if key == "kept_16bit" else [],
        "tensors": {text: {} for text in texts if key == "tensors"},
    }
    opened = open_config(write(tmp_path / "quant_config.json", config))
    assert kinds(opened) == (["over-limit"] if more > 0 else [])
    if more > 0:
        assert "more than 10,000 patterns" in opened.defects[0].problem.message
        assert opened.manifest is None
        assert [finding.code for finding in check(opened).findings] == ["QM010"]


def test_plain_names_are_not_limited_as_patterns_are(tmp_path: Path) -> None:
    count = limits.MAX_PATTERNS + 1
    kept = [f"a.{number}.weight" for number in range(count)]
    config = TENSOR_MAP | {"kept_16bit": kept}
    opened = open_config(write(tmp_path / "quant_config.json", config))
    assert opened.manifest is not None
    assert len(opened.manifest.components[0].kept) == count


def test_protected_lines_count_for_each_component(tmp_path: Path) -> None:
    lists: dict[str, list[str]] = {f"c{number}_q4": [] for number in range(101)}
    protected = [f"p{number}" for number in range(100)]
    config = Q4_LISTS | {"protected_fp16": protected} | lists
    opened = open_config(write(tmp_path / "quant_config.json", config))
    assert kinds(opened) == ["over-limit"]


def test_config_alone(tmp_path: Path) -> None:
    opened = open_config(write(tmp_path / "q.json", TENSOR_MAP))
    assert opened.config_only
    assert opened.config_name == "q.json"
    assert opened.root == tmp_path
    assert names(opened) == ["a.weight"]
    assert opened.all_stores == ()
    skipped = {skip.reason for skip in check(opened).skipped}
    assert "only the config is checked" in skipped


def test_the_original(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", TABLE, TENSOR_MAP)
    write_checkpoint(tmp_path / "base", "a.weight BF16 4x64\nnorm.weight F32 64")
    opened = open_checkpoint(tmp_path / "c", base=tmp_path / "base")
    original = opened.original("", "a.weight")
    assert original is not None
    assert str(original) == "BF16 [4, 64]"
    assert opened.original("", "b.weight") is None
    assert open_checkpoint(tmp_path / "c").original("", "a.weight") is None
    assert check(opened).findings == ()


def test_renames_say_what_a_dead_entry_would_match(tmp_path: Path) -> None:
    config = TENSOR_MAP | {
        "kept_16bit": ["norm.weight", "gone.weight"],
        "tensors": {"model.a.weight": {}, "model.b.weight": {}},
    }
    write_checkpoint(tmp_path, TABLE, config)
    opened = open_checkpoint(tmp_path)
    assert opened.renames.keys() == {("", "/tensors/model.a.weight")}
    change = opened.renames["", "/tensors/model.a.weight"]
    assert (change.kind, change.old, change.new) == ("prefix", "model.", "")
    assert change.example == "a.weight"


def test_renames_of_modules_leave_out_what_is_appended(tmp_path: Path) -> None:
    model = {"quantization": {"bits": 4, "group_size": 64, "model.a": {"bits": 4}}}
    write_checkpoint(tmp_path, TABLE, model, config_name="config.json")
    ((key, change),) = open_checkpoint(tmp_path).renames.items()
    assert key == ("", "/quantization/model.a")
    assert change.example == "a"


@pytest.mark.parametrize("what", ["path", "config", "base", "component"])
def test_paths_that_do_not_exist(tmp_path: Path, what: str) -> None:
    write_checkpoint(tmp_path / "c", TABLE, TENSOR_MAP)
    nothing = tmp_path / "nothing"
    arguments: dict[str, dict[str, Any]] = {
        "path": {"path": nothing},
        "config": {"config": nothing},
        "base": {"base": nothing},
        "component": {"components": {"": nothing}},
    }
    given = {"path": tmp_path / "c"} | arguments[what]
    with pytest.raises(FileNotFoundError):
        open_checkpoint(**given)
    with pytest.raises(FileNotFoundError):
        open_config(nothing)


def test_a_broken_link_is_there_and_unreadable(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert kinds(open_config(link)) == ["unreadable-json"]
    assert kinds(open_checkpoint(link)) == ["not-safetensors"]


def test_defects_by_kind(tmp_path: Path) -> None:
    config = TENSOR_MAP | {"kept_16bit": ["re:[", "a.weight"]}
    opened = open_config(write(tmp_path / "q.json", config))
    assert len(list(opened.defects_of(DefectKind.BAD_PATTERN))) == 1
    both = opened.defects_of(DefectKind.BAD_PATTERN, DefectKind.CONTRADICTION)
    assert len(list(both)) == 2
    assert list(opened.defects_of(DefectKind.LABEL)) == []


def test_opening_reads_no_tensor_data(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, TABLE, TENSOR_MAP)
    before = open_checkpoint(folder)
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-64:] = bytes(64)
    file.write_bytes(data)
    after = open_checkpoint(folder)
    assert before.manifest == after.manifest
    assert before.defects == after.defects == ()
