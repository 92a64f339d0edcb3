"""SARIF: the parts that code hosts read, and paths that are hard to write as URIs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.check import Report, Skip
from qmanifest.findings import Finding, Location, Problem, Severity
from qmanifest.reports.sarif import file_uri, write_sarif
from qmanifest.rules import RULES
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint


@rule("QM201", "missing-tensor", Severity.ERROR, needs=Depth.HEADERS)
def missing_tensor(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A tensor the config promises is in no safetensors file.

    ## Fix
    Convert again.
    """
    del checkpoint
    yield Problem("x")


AT = Location("q.json", "/emb_q4/1", "b.weight", None, 12, 5)
BYTES = Location("m.safetensors", byte_range=(8, 24))
FINDING = Finding("QM201", Severity.ERROR, "no b", "convert", (AT, BYTES), 4, 8)


def log(*findings: Finding, path: str = "ckpt") -> Any:  # noqa: ANN401 - JSON
    skipped = (Skip("QM501", "needs --deep"),)
    report = Report(findings, skipped, ("QM201",), path, "q4-lists", 1, 2)
    text = write_sarif(report, [missing_tensor])
    assert text.isascii()
    return json.loads(text)


def run(*findings: Finding, path: str = "ckpt") -> Any:  # noqa: ANN401 - JSON
    whole = log(*findings, path=path)
    assert whole["version"] == "2.1.0"
    (only,) = whole["runs"]
    return only


def test_rules_are_described() -> None:
    driver = run()["tool"]["driver"]
    assert driver["name"] == "qmanifest"
    (described,) = driver["rules"]
    assert described["id"] == "QM201"
    assert described["name"] == "MissingTensor"
    assert described["shortDescription"]["text"] == (
        "A tensor the config promises is in no safetensors file."
    )
    assert "## Fix\nConvert again." in described["fullDescription"]["text"]
    assert described["helpUri"] == "urn:qmanifest:rule:QM201"
    assert described["defaultConfiguration"] == {"level": "error"}


def test_all_rules_are_described_by_default() -> None:
    document = json.loads(write_sarif(Report((), (), ())))
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == [each.code for each in RULES]


def test_result_has_places_in_text_in_bytes_and_by_name() -> None:
    (result,) = run(FINDING)["results"]
    assert result["ruleId"] == "QM201"
    assert result["ruleIndex"] == 0
    assert result["level"] == "error"
    assert result["message"] == {"text": "no b. Hint: convert."}
    assert result["properties"] == {"hint": "convert", "expected": 4, "actual": 8}
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "ckpt/q.json"},
        "region": {"startLine": 12, "startColumn": 5},
    }
    names = [each["fullyQualifiedName"] for each in location["logicalLocations"]]
    assert names == ["b.weight", "/emb_q4/1"]
    (related,) = result["relatedLocations"]
    region = related["physicalLocation"]["region"]
    assert region == {"byteOffset": 8, "byteLength": 16}


def test_skipped_rules_are_notifications() -> None:
    (invocation,) = run()["invocations"]
    assert invocation["executionSuccessful"] is True
    (note,) = invocation["toolExecutionNotifications"]
    assert note["associatedRule"]["id"] == "QM501"
    assert "needs --deep" in note["message"]["text"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("see [this](http://evil)", "see [this\\](http://evil)"),
        ("shape [4, 64] of {name}", "shape [4, 64] of {name}"),
        ("argument {0}", "argument {{0}}"),
        ("a\nb\u202e", r"a\nb\u202e"),
    ],
)
def test_message_is_read_as_plain_text(message: str, text: str) -> None:
    (result,) = run(replace(FINDING, message=message, hint=None))["results"]
    assert result["message"]["text"] == text


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/c.json", "a%20b/c.json"),
        ("c:d.json", "c%3Ad.json"),
        ("\u00e9#?%", "%C3%A9%23%3F%25"),
        ("\udcff", "%FF"),
        ("\ud800", "%ED%A0%80"),
        ("/abs/q.json", "file:///abs/q.json"),
        ("a\nb", "a%0Ab"),
    ],
)
def test_paths_are_percent_encoded(path: str, uri: str) -> None:
    assert file_uri(path) == uri


@given(st.text(st.characters(), max_size=40))
def test_any_file_has_an_ascii_uri(path: str) -> None:
    uri = file_uri(path)
    assert uri.isascii()
    assert uri.isprintable()
    assert " " not in uri


def test_a_finding_without_location_is_still_a_result() -> None:
    (result,) = run(replace(FINDING, at=(), expected=None, actual=None, hint=None))[
        "results"
    ]
    assert result["locations"] == []
    assert "properties" not in result
    assert "relatedLocations" not in result
