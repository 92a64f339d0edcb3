"""The JSON report: its shape, its schema, and hostile values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from qmanifest import __version__
from qmanifest.check import Report, Skip
from qmanifest.findings import Finding, JsonValue, Location, Severity
from qmanifest.reports import write_json
from qmanifest.schema import schema

AT = Location("q.json", "/emb_q4/1", "b.weight", None, 12, 5)
FINDING = Finding(
    "QM201", Severity.ERROR, "no b", "convert", (AT, Location(byte_range=(8, 9))), 4, 8
)
REPORT = Report(
    (FINDING, replace(FINDING, severity=Severity.NOTE, hint=None, at=())),
    (Skip("QM501", "needs --deep"),),
    ("QM201", "QM202"),
    "ckpt",
    "q4-lists",
    36,
    104,
    ("u32-lsb",),
)
VALIDATOR = Draft202012Validator(schema("report"), registry=Registry())


def written(report: Report | list[Report]) -> Any:  # noqa: ANN401 - JSON
    text = write_json(report)
    assert text.isascii()
    assert text.endswith("}\n")
    document = json.loads(text)
    VALIDATOR.validate(document)
    return document


def test_whole_document() -> None:
    finding = {
        "code": "QM201",
        "severity": "error",
        "message": "no b",
        "hint": "convert",
        "at": [
            {
                "file": "q.json",
                "pointer": "/emb_q4/1",
                "tensor": "b.weight",
                "line": 12,
                "column": 5,
            },
            {"byte_range": [8, 9]},
        ],
        "expected": 4,
        "actual": 8,
    }
    assert written(REPORT) == {
        "schema_version": 1,
        "tool": {"name": "qmanifest", "version": __version__},
        "findings": [finding, finding | {"severity": "note", "hint": None, "at": []}],
        "skipped": [{"code": "QM501", "reason": "needs --deep"}],
        "summary": {
            "paths": ["ckpt"],
            "dialect": "q4-lists",
            "weights": 36,
            "tensors": 104,
            "packings": ["u32-lsb"],
            "checked": ["QM201", "QM202"],
            "errors": 1,
            "warnings": 0,
            "notes": 1,
        },
    }


def test_several_paths_prefix_files_and_sum_up() -> None:
    other = replace(REPORT, path="b", dialect="mlx", checked=("QM301",))
    document = written([REPORT, other])
    files = [at.get("file") for f in document["findings"] for at in f["at"]]
    assert files == ["ckpt/q.json", None, "b/q.json", None]
    assert [skip["path"] for skip in document["skipped"]] == ["ckpt", "b"]
    summary = document["summary"]
    assert summary["paths"] == ["ckpt", "b"]
    assert summary["dialect"] is None
    assert summary["tensors"] == 208
    assert summary["errors"] == 2
    assert summary["checked"] == ["QM201", "QM202", "QM301"]


def test_numbers_that_json_lacks_become_text() -> None:
    values: JsonValue = [float("inf"), {"a": float("nan")}, 0.5, True]
    (finding,) = written(replace(REPORT, findings=(replace(FINDING, actual=values),)))[
        "findings"
    ]
    assert finding["actual"] == ["inf", {"a": "nan"}, 0.5, True]


hostile = st.text(st.characters(), max_size=50)


@given(hostile, hostile, hostile)
def test_any_text_comes_through_unchanged(file: str, name: str, message: str) -> None:
    at = Location(file, name, name)
    finding = Finding("QM201", Severity.ERROR, message, name, (at,), name, [file])
    document = written(Report((finding,), (), (), file))
    (found,) = document["findings"]
    assert found["message"] == message
    assert found["at"] == [{"file": file, "pointer": name, "tensor": name}]
    assert document["summary"]["paths"] == [file]


def test_schema_refuses_another_shape() -> None:
    document = written(REPORT)
    del document["findings"][0]["severity"]
    document["schema_version"] = 2
    assert len(list(VALIDATOR.iter_errors(document))) == 2
