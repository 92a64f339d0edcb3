"""The report as SARIF 2.1.0, which code hosts and editors show beside the files.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from qmanifest import __version__
from qmanifest.reports.json_form import NAME, plain
from qmanifest.reports.places import Reports, as_reports, below, from_here
from qmanifest.reports.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmanifest.check import Report
    from qmanifest.findings import Finding, Location
    from qmanifest.rules.base import Rule

Object: TypeAlias = dict[str, Any]
"""A JSON object."""

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
    "sarif-schema-2.1.0.json"
)
_PLACEHOLDER: Final = re.compile(r"\{(\d+)\}")


def write_sarif(reports: Reports, rules: Iterable[Rule] | None = None) -> str:
    """Write reports as one SARIF run; files are relative to the working folder.

    Args:
        reports: one report, or one per path.
        rules: the rules that may have found something; None stands for all.

    """
    from qmanifest.rules import RULES  # noqa: PLC0415 - no other format loads the rules

    several = as_reports(reports)
    described = [_rule(rule) for rule in (RULES if rules is None else rules)]
    index = {rule["id"]: number for number, rule in enumerate(described)}
    run = {
        "tool": {"driver": {"name": NAME, "version": __version__, "rules": described}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": _skips(several, index),
            }
        ],
        "results": [
            _result(finding, from_here(report.path), index)
            for report in several
            for finding in report.findings
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, allow_nan=False) + "\n"


def _rule(rule: Rule) -> Object:
    """Describe a rule by its page."""
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.page},
        "help": {"text": rule.page, "markdown": rule.page},
        "helpUri": f"urn:qmanifest:rule:{rule.code}",
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _rule_reference(code: str, index: dict[str, int]) -> Object:
    """Refer to a rule by its code, and by its place where it is described."""
    place = {"ruleIndex": index[code]} if code in index else {}
    return {"ruleId": code, **place}


def _result(finding: Finding, root: str, index: dict[str, int]) -> Object:
    """Write one finding."""
    result = {
        **_rule_reference(finding.code, index),
        "level": finding.severity.value,
        "message": {"text": _text(finding)},
        "locations": [_location(at, root) for at in finding.at[:1]],
    }
    if len(finding.at) > 1:
        others = enumerate(finding.at[1:], 1)
        result["relatedLocations"] = [
            {"id": number, **_location(at, root)} for number, at in others
        ]
    properties = {"hint": finding.hint, "expected": plain(finding.expected)}
    properties["actual"] = plain(finding.actual)
    known = {key: value for key, value in properties.items() if value is not None}
    return {**result, "properties": known} if known else result


def _text(finding: Finding) -> str:
    """Write the message, so that no name in it is read as a link or a placeholder."""
    hint = f" Hint: {finding.hint}." if finding.hint else ""
    text = printable(finding.message + ("." if hint else "") + hint)
    return _PLACEHOLDER.sub(r"{{\1}}", text).replace("](", "\\](")


def _location(at: Location, root: str) -> Object:
    """Write a place as file and region, and a tensor or pointer by its name."""
    location: Object = {}
    if at.file is not None:
        physical: Object = {"artifactLocation": {"uri": file_uri(below(root, at.file))}}
        if region := _region(at):
            physical["region"] = region
        location["physicalLocation"] = physical
    logical = [
        {"name": printable(name), "fullyQualifiedName": printable(name), "kind": kind}
        for name, kind in ((at.tensor, "resource"), (at.pointer, "value"))
        if name
    ]
    return {**location, "logicalLocations": logical} if logical else location


def _region(at: Location) -> Object:
    """Write lines for text, bytes for shards."""
    if at.line is not None:
        column = {} if at.column is None else {"startColumn": at.column}
        return {"startLine": at.line, **column}
    if at.byte_range is None:
        return {}
    begin, end = at.byte_range
    return {"byteOffset": begin, "byteLength": end - begin}


def _skips(reports: Sequence[Report], index: dict[str, int]) -> list[Object]:
    """Say of every rule that was not run why."""
    skips = dict.fromkeys(skip for report in reports for skip in report.skipped)
    notes = []
    for skip in skips:
        place = {"index": index[skip.code]} if skip.code in index else {}
        notes.append(
            {
                "level": "note",
                "message": {"text": f"{skip.code} was skipped: {skip.reason}"},
                "associatedRule": {"id": skip.code, **place},
            }
        )
    return notes


def file_uri(path: str) -> str:
    """Percent-encode a path as a URI reference, whatever bytes it has.

    >>> file_uri("a b/c:d.json")
    'a%20b/c%3Ad.json'
    """
    try:
        octets = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        octets = path.encode("utf-8", "surrogatepass")
    absolute = PurePath(path).is_absolute()
    return ("file://" if absolute else "") + quote(octets, safe="/")
