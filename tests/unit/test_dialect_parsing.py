"""Documents: every problem at once, each with its JSON Pointer and a way out."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.documents import GOOD

from qmanifest.dialects import DIALECTS, dialect_named, recognize
from qmanifest.dialects.base import MOST, Place
from qmanifest.dialects.documents.parsing import descend, emitted, parse
from qmanifest.dialects.tensor_map import TensorMap
from qmanifest.errors import EmitError, InvalidConfigError, UnknownDialectError
from qmanifest.findings import Defect, DefectKind

Config = dict[str, Any]
TENSOR_MAP: Final[Config] = {
    "bits": 4,
    "group_size": 64,
    "kept_16bit": ["a.weight", "b.*"],
    "tensors": {"c.weight": {"bits": 8, "group_size": 32, "shape": [4, 64]}},
}
Q4_LISTS: Final[Config] = {
    "quant": "q4",
    "group": 64,
    "scheme": "prose",
    "protected_fp16": ["norm"],
    "emb_q4": ["a.weight"],
}
MLX: Final[Config] = {"bits": 4, "group_size": 64, "a.b": {"bits": 8}, "c": False}
FOUNDING: Final = {"tensor-map": TENSOR_MAP, "q4-lists": Q4_LISTS, "mlx": MLX}


def defects(dialect: str, config: object, place: Place | None = None) -> list[Defect]:
    try:
        parse(dialect_named(dialect), config, place or Place("q.json"))
    except InvalidConfigError as error:
        return list(error.defects)
    return []


def faults(dialect: str, config: object) -> set[tuple[str, str | None]]:
    """Give kind and pointer of every problem."""
    found = defects(dialect, config)
    assert all(each.problem.at[0].file == "q.json" for each in found)
    return {(each.kind.value, each.problem.at[0].pointer) for each in found}


@pytest.mark.parametrize("dialect", GOOD)
def test_good_documents_come_back_as_they_were(dialect: str) -> None:
    config = GOOD[dialect]
    document = parse(dialect_named(dialect), config, Place())
    assert document.to_json() == config
    again = parse(dialect_named(dialect), document.to_json(), Place())
    assert again == document


@pytest.mark.parametrize("dialect", GOOD)
def test_an_editor_schema_is_kept_and_means_nothing(dialect: str) -> None:
    config = {"$schema": "https://example.org/x.json", **GOOD[dialect]}
    document = parse(dialect_named(dialect), config, Place())
    assert document.to_json() == config
    assert document.editor_schema == "https://example.org/x.json"
    assert faults(dialect, GOOD[dialect] | {"$schema": 7}) == {
        ("invalid-value", "/$schema")
    }


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize("value", [None, [], "x", 7, True], ids=repr)
def test_no_object(dialect: str, value: object) -> None:
    (defect,) = defects(dialect, value)
    assert defect.kind is DefectKind.INVALID_VALUE
    assert defect.problem.at[0].pointer == ""
    assert defect.problem.message.startswith(f"the document is {value!r}: ")


@pytest.mark.parametrize(
    ("dialect", "missing"),
    [
        ("tensor-map", {"/bits", "/group_size", "/kept_16bit", "/tensors"}),
        (
            "q4-lists",
            {
                *("/quant", "/group", "/scheme", "/protected_fp16"),
                "/<component>_<quant>",
            },
        ),
        ("mlx", {"/bits", "/group_size"}),
    ],
)
def test_all_missing_keys_at_once(dialect: str, missing: set[str]) -> None:
    assert faults(dialect, {}) == {("missing-key", pointer) for pointer in missing}
    (first, *_) = defects(dialect, {})
    assert first.problem.message.endswith("is missing")
    assert (first.problem.hint or "").startswith("add ")


def test_every_problem_of_a_tensor_map_at_once() -> None:
    config = {
        "bits": "4",
        "group_sise": 64,
        "mode": "fp4",
        "kept_16bit": ["a", "a", ""],
        "tensors": {
            "x/y~z": {"bit": 4, "shape": [4]},
            "": {},
            "w": {"group_size": 4.0, "shape": [4, -1]},
            "v": 7,
        },
        "scan": {"keep_backbone": -1, "files": "x"},
    }
    assert faults("tensor-map", config) == {
        ("invalid-value", "/bits"),
        ("missing-key", "/group_size"),
        ("unknown-key", "/group_sise"),
        ("invalid-value", "/mode"),
        ("invalid-value", "/kept_16bit/2"),
        ("unknown-key", "/tensors/x~1y~0z/bit"),
        ("invalid-value", "/tensors/x~1y~0z/shape"),
        ("invalid-value", "/tensors/"),
        ("invalid-value", "/tensors/w/group_size"),
        ("invalid-value", "/tensors/w/shape/1"),
        ("invalid-value", "/tensors/v"),
        ("invalid-value", "/scan/keep_backbone"),
        ("unknown-key", "/scan/files"),
    }


def test_every_problem_of_q4_lists_at_once() -> None:
    config = {
        "quant": "q7",
        "group": 0,
        "scheme": ["{prose}"],
        "protected": [],
        "protected_fp16": ["norm", "norm"],
        "emb_q4": ["a", "a"],
        "rr_q4": "b",
        "rr_q9": [],
        "_q4": [],
    }
    assert faults("q4-lists", config) == {
        ("invalid-value", "/quant"),
        ("invalid-value", "/group"),
        ("invalid-value", "/scheme"),
        ("unknown-key", "/protected"),
        ("contradiction", "/protected_fp16"),
        ("contradiction", "/emb_q4"),
        ("invalid-value", "/rr_q4"),
        ("unknown-key", "/rr_q9"),
        ("unknown-key", "/_q4"),
    }
    (prose,) = [d for d in defects("q4-lists", config) if "scheme" in d.problem.message]
    assert "['{prose}']" in prose.problem.message


def test_every_problem_of_an_mlx_block_at_once() -> None:
    config = {
        "bits": 0,
        "mode": None,
        "a": "8",
        "b": 8,
        "c.d": {"bit": 8, "group_size": True},
        "e": {"mode": "nf4"},
        "f": None,
    }
    assert faults("mlx", config) == {
        ("invalid-value", "/bits"),
        ("missing-key", "/group_size"),
        ("invalid-value", "/mode"),
        ("unknown-key", "/a"),
        ("unknown-key", "/b"),
        ("unknown-key", "/c.d/bit"),
        ("invalid-value", "/c.d/group_size"),
        ("invalid-value", "/e/mode"),
        ("unknown-key", "/f"),
    }


@pytest.mark.parametrize("dialect", FOUNDING)
@pytest.mark.parametrize("value", [True, "64", 64.0, None, [64]], ids=repr)
def test_types_are_strict(dialect: str, value: object) -> None:
    key = "group" if dialect == "q4-lists" else "group_size"
    (defect,) = defects(dialect, FOUNDING[dialect] | {key: value})
    assert defect.kind is DefectKind.INVALID_VALUE
    assert defect.problem.at[0].pointer == f"/{key}"
    assert defect.problem.message.startswith(f"{key} is {value!r}: ")
    assert defect.problem.actual == repr(value)


@pytest.mark.parametrize("key", ["bits", "group_size", "shape"])
def test_types_are_strict_within_entries(key: str) -> None:
    wrong: object = [4, "64"] if key == "shape" else "8"
    entry = {"bits": 8, "group_size": 64, "shape": [4, 64], key: wrong}
    config = TENSOR_MAP | {"tensors": {"a": entry}}
    pointer = f"/tensors/a/{key}" + ("/1" if key == "shape" else "")
    assert faults("tensor-map", config) == {("invalid-value", pointer)}


@pytest.mark.parametrize(
    ("dialect", "change", "hint"),
    [
        ("tensor-map", {"kept16bit": []}, "did you mean 'kept_16bit'?"),
        ("tensor-map", {"zzzz": 1}, "remove 'zzzz'"),
        (
            "tensor-map",
            {"tensors": {"a": {"groupsize": 4}}},
            "did you mean 'group_size'?",
        ),
        ("tensor-map", {"tensors": {"a": {"shapes": 4}}}, "did you mean 'shape'?"),
        ("q4-lists", {"groups": 64}, "did you mean 'group'?"),
        ("q4-lists", {"schema": "x"}, "did you mean '$schema'?"),
        ("mlx", {"group_sz": 64}, "did you mean 'group_size'?"),
        ("mlx", {"a": {"bit": 4}}, "did you mean 'bits'?"),
    ],
)
def test_unknown_keys_are_met_with_a_suggestion(
    dialect: str, change: Config, hint: str
) -> None:
    (defect,) = defects(dialect, FOUNDING[dialect] | change)
    assert defect.kind is DefectKind.UNKNOWN_KEY
    assert defect.problem.hint == hint


def test_names_listed_twice_are_named() -> None:
    config = TENSOR_MAP | {"kept_16bit": ["b", "a", "b", "{x}", "a", "{x}"]}
    (defect,) = defects("tensor-map", config)
    assert defect.problem.message.endswith("listed twice: 'a', 'b', '{x}'")


def test_many_repeats_are_counted() -> None:
    names = [str(number) for number in range(1000)]
    (defect,) = defects("tensor-map", TENSOR_MAP | {"kept_16bit": names * 2})
    assert defect.problem.message.endswith("and 980 more")


@pytest.mark.parametrize(("number", "reported"), [(20, 20), (21, 1)])
def test_a_list_of_another_sort_is_one_problem(number: int, reported: int) -> None:
    found = defects("tensor-map", TENSOR_MAP | {"kept_16bit": [1] * number})
    assert len(found) == reported
    if reported == 1:
        assert "21 items are not strings" in found[0].problem.message


@pytest.mark.parametrize(
    ("number", "reported"), [(MOST - 1, MOST - 1), (MOST, MOST), (MOST + 1, MOST + 1)]
)
def test_the_rest_of_many_problems_is_counted(number: int, reported: int) -> None:
    entries = {str(each): 7 for each in range(number)}
    found = defects("tensor-map", TENSOR_MAP | {"tensors": entries})
    assert len(found) == reported
    said = found[-1].problem.message
    assert ("1 more like this, not listed" in said) == (number > MOST)


def test_names_are_at_most_1024_characters() -> None:
    for size, fits in ((1023, True), (1024, True), (1025, False)):
        config = TENSOR_MAP | {"kept_16bit": ["x" * size]}
        assert (faults("tensor-map", config) == set()) == fits


def test_long_values_are_cut_in_messages() -> None:
    (defect,) = defects("tensor-map", TENSOR_MAP | {"bits": "4" * 10_000})
    assert len(defect.problem.message) < 150


def test_pointers_count_from_the_top_of_the_file() -> None:
    raw = {"quantization": {"bits": True, "group_size": 64}}
    (defect,) = defects("mlx", raw, Place("config.json", ("quantization",)))
    assert defect.problem.at[0].pointer == "/quantization/bits"
    assert defect.problem.at[0].file == "config.json"


def test_error_lists_every_problem_on_a_line_of_its_own() -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parse(dialect_named("tensor-map"), {"bits": 4}, Place("q.json"))
    assert caught.value.dialect == "tensor-map"
    first, *lines = str(caught.value).splitlines()
    assert first == "not a valid tensor-map config:"
    assert lines[0] == "  q.json#/group_size: key 'group_size' is missing"
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("keys", "found"),
    [((), {"a": {"b": 1}}), (("a",), {"b": 1}), (("a", "b"), 1), (("a", "c"), None)],
)
def test_descend(keys: tuple[str, ...], found: object) -> None:
    assert descend({"a": {"b": 1}}, keys) == found
    assert descend([1], ("0",)) is None


@pytest.mark.parametrize("dialect", GOOD)
def test_each_is_recognised_by_its_own_dialect(dialect: str) -> None:
    raw = dialect_named(dialect).wrap(GOOD[dialect])
    assert [each.id for each in recognize(raw)] == [dialect]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"bits": 4, "group_size": 64},
        {"quant_method": "homegrown", "bits": 4},
        {"quantization": {"quant_method": "awq", "bits": 4}},
        {"quantization": {"group_size": 64}},
        {"quantization": [4]},
        {"quantization": None},
    ],
    ids=str,
)
def test_what_nobody_recognises(raw: Config) -> None:
    assert recognize(raw) == ()


def test_dialects_have_ids_of_their_own() -> None:
    ids = [each.id for each in DIALECTS]
    assert len(set(ids)) == len(ids)
    assert set(GOOD) == set(ids)
    with pytest.raises(UnknownDialectError) as caught:
        dialect_named("gguf")
    assert caught.value.name == "gguf"
    assert caught.value.known == tuple(ids)


def test_what_cannot_be_emitted_is_said() -> None:
    value = TENSOR_MAP | {"tensors": {"a/b": {"shape": [4]}}}
    with pytest.raises(
        EmitError, match=r"TensorMap cannot say /tensors/a~1b/shape: list"
    ):
        emitted(TensorMap, value)
