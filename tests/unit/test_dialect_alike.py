"""A document of few different entries is read as if each were read by itself."""

from __future__ import annotations

from typing import Any

import pytest

from qmanifest.dialects import dialect_named
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents import alike, parsing
from qmanifest.dialects.documents.alike import read_alike
from qmanifest.dialects.tensor_map import TensorMap
from qmanifest.errors import InvalidConfigError

Config = dict[str, Any]
SOUND: Config = {"shape": [1, 64], "bits": 4}
COUNT = 40


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_MANY", COUNT)


def config(*entries: Any, **names: Any) -> Config:  # noqa: ANN401 - JSON, sound or not
    """Write a config whose entries are the same few objects in turn."""
    tensors = {f"n{at}": entries[at % len(entries)] for at in range(COUNT)} | names
    return {"bits": 4, "group_size": 64, "kept_16bit": ["x"], "tensors": tensors}


def test_the_document_is_the_same() -> None:
    value = config(SOUND, {}, {"group_size": 32})
    document = read_alike(TensorMap, value)
    plain = TensorMap.model_validate(value)
    assert document == plain
    assert document is not None
    assert document.model_dump_json() == plain.model_dump_json()
    assert document.model_fields_set == plain.model_fields_set
    assert document.tensors["n0"] is document.tensors["n3"]


@pytest.mark.parametrize(
    "value",
    [
        config(SOUND, {"bits": 0}),
        config(SOUND, {"bits": True}),
        config(SOUND, {"bits": 4.0}),
        config(SOUND, {"bats": 4}),
        config(SOUND, {"shape": [1]}),
        config(SOUND, {"shape": [1, -1]}),
        config(SOUND, []),
        config(SOUND, None),
        config(SOUND) | {"group_size": "64"},
        config(SOUND) | {"another": 1},
        config(SOUND) | {"kept_16bit": ["a", "a"]},
        config(SOUND, **{"": SOUND}),
        config(SOUND, **{"n" * 1025: SOUND}),
    ],
)
def test_what_is_wrong_is_found_as_ever(
    value: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_alike(TensorMap, value) is None
    dialect, place = dialect_named("tensor-map"), Place("f")
    with pytest.raises(InvalidConfigError) as found:
        parsing.parse(dialect, value, place)
    monkeypatch.setattr(parsing, "read_alike", lambda *_: None)
    with pytest.raises(InvalidConfigError) as strictly:
        parsing.parse(dialect, value, place)
    assert found.value.defects == strictly.value.defects


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"tensors": []},
        config(*({"bits": 4} for _ in range(COUNT))),
        config(SOUND) | {"tensors": {"a": SOUND}},
    ],
)
def test_other_values_are_left_alone(value: object) -> None:
    assert read_alike(TensorMap, value) is None


def test_other_documents_are_left_alone() -> None:
    document = dialect_named("q4-lists").document
    assert document.independent is None
    assert read_alike(document, config(SOUND)) is None
