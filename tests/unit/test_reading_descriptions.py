"""Descriptions in headers: what is read, and what is none."""

from __future__ import annotations

import json

import pytest

from qmanifest.reading.descriptions import Description, describes, descriptions
from qmanifest.reading.safetensors_header import Header

INT8 = json.dumps({"_type": "Int8Tensor", "_tensor_data_names": ["qdata", "scale"]})


def read(metadata: dict[str, str] | None) -> list[Description]:
    return list(descriptions(Header("m", 0, metadata=metadata)))


def test_fields_are_called_after_the_parameter() -> None:
    names = json.dumps(["a.b.weight", "a.experts.down_proj", "weight"])
    metadata = {"tensor_names": names, "a.b.weight": INT8, "a.experts.down_proj": INT8}
    found = read(metadata | {"weight": '{"_type": "Tensor"}'})
    assert [each.parts for each in found] == [
        ("a.b._weight_qdata", "a.b._weight_scale"),
        ("a.experts._down_proj_qdata", "a.experts._down_proj_scale"),
        ("weight",),
    ]
    assert [each.kind for each in found] == ["Int8Tensor", "Int8Tensor", "Tensor"]


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"format": "pt"},
        {"tensor_names": "nonsense"},
        {"tensor_names": "{}"},
        {"tensor_names": "[" * 100_000},
        {"tensor_names": "[1, null]"},
    ],
)
def test_headers_that_describe_nothing(metadata: dict[str, str] | None) -> None:
    assert read(metadata) == []


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "{}", '{"_type": 1}', " " * 70_000 + INT8]
)
def test_a_description_that_cannot_be_read(text: str) -> None:
    assert read({"tensor_names": '["a"]', "a": text}) == [
        Description("m", "a", None, ())
    ]


def test_fields_that_are_no_names_are_none() -> None:
    text = '{"_type": "T", "_tensor_data_names": [1]}'
    (found,) = read({"tensor_names": '["a"]', "a": text})
    assert found.parts == ("a",)


def test_whether_a_header_describes() -> None:
    assert describes(Header("m", 0, metadata={"tensor_names": "[]"}))
    assert not describes(Header("m", 0))
