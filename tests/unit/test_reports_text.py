"""The report for people: lines, groups, hints, colours."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.check import Report, Skip
from qmanifest.findings import Finding, Location, Severity
from qmanifest.reports import WRITERS
from qmanifest.reports.text import LIMIT, skipped_line, write_text


def missing(number: int, severity: Severity = Severity.ERROR) -> Finding:
    name = f"layer.{number}.weight"
    at = Location("q.json", f"/emb_q4/{number}", name, line=number + 3, column=5)
    message = f"promised tensor {name!r} is in no safetensors file"
    return Finding("QM201", severity, message, "convert again", (at,))


def report(*findings: Finding, skipped: tuple[Skip, ...] = ()) -> Report:
    return Report(findings, skipped, ("QM201",), "ckpt", "q4-lists", 36, 104)


def test_a_finding_is_one_line_with_place_code_and_severity() -> None:
    assert write_text(report(missing(1))) == (
        "q.json:4:5 #/emb_q4/1: QM201 error: "
        "promised tensor 'layer.1.weight' is in no safetensors file\n"
        "  hint: convert again\n"
        "1 error, 0 warnings, 0 notes; 104 tensors, 36 weights, dialect q4-lists\n"
    )


def test_three_of_a_code_stand_alone_and_share_their_hint() -> None:
    lines = write_text(report(*map(missing, range(3)))).splitlines()
    assert [line.startswith("q.json:") for line in lines] == [True] * 3 + [False] * 2
    assert lines[3] == "  hint: convert again"


def test_four_of_a_code_are_one_group() -> None:
    lines = write_text(report(*map(missing, range(188)))).splitlines()
    assert lines[0] == (
        "q.json:3:5 #/emb_q4/0: QM201 error x 188 tensors, first: "
        "promised tensor 'layer.0.weight' is in no safetensors file"
    )
    assert lines[1].startswith("  also: 'layer.1.weight', 'layer.2.weight', ")
    assert lines[1].endswith("more (--full lists all)")
    assert len(lines) == 4
    assert lines[-1].startswith("188 errors, ")


def test_full_groups_nothing_and_shows_related_places() -> None:
    related = Location("m.safetensors", byte_range=(8, 16))
    findings = [
        replace(each, at=(*each.at, related)) for each in map(missing, range(5))
    ]
    lines = write_text(report(*findings), full=True).splitlines()
    assert sum(line.startswith("q.json:") for line in lines) == 5
    assert lines.count("  see: m.safetensors bytes 8-16") == 5


def test_severities_are_grouped_apart() -> None:
    findings = [missing(n, s) for s in Severity for n in range(4)]
    text = write_text(report(*findings))
    for severity in Severity:
        assert f"QM201 {severity} x 4 tensors" in text


def test_notes_have_no_hint_line() -> None:
    assert "hint" not in write_text(report(missing(1, Severity.NOTE)))


def test_one_tensor_with_several_findings_is_no_count_of_tensors() -> None:
    findings = [replace(missing(1), message=str(number)) for number in range(4)]
    assert "QM201 error x 4, first: 0" in write_text(report(*findings))


def test_no_findings_never_say_warn_but_as_a_count_of_zero() -> None:
    text = write_text(report())
    assert text.count("0 warnings") == 1
    assert not re.search("warn", text.replace("0 warnings", ""), re.IGNORECASE)


def test_skipped_rules_are_one_line_by_reason() -> None:
    deep = [Skip(f"QM50{number}", "needs --deep") for number in range(1, 8)]
    other = (Skip("QM601", "no base"), Skip("QM603", "no base"))
    assert skipped_line((*deep, *other)) == (
        "QM501-QM507 (needs --deep); QM601, QM603 (no base)"
    )
    text = write_text(report(skipped=(*deep, *other)))
    assert "skipped: QM501-QM507 (needs --deep); QM601, QM603 (no base)\n" in text


def test_colours_only_where_asked() -> None:
    plain = write_text(report(missing(1)))
    colored = write_text(report(missing(1)), color=True)
    assert "\x1b" not in plain
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == plain
    assert "\x1b[1;31m" in colored


def test_several_paths_are_told_apart() -> None:
    one = replace(report(missing(1)), path="a/b")
    two = replace(report(), path="c")
    text = write_text((one, two))
    assert text.startswith("a/b/q.json:4:5 #/emb_q4/1: QM201 error")
    assert "\na/b: 1 error, " in text
    assert "\nc: 0 errors, " in text


def test_a_finding_without_location_names_the_checkpoint() -> None:
    finding = replace(missing(1), at=())
    assert write_text(report(finding)).startswith("checkpoint: QM201 error: ")


def test_no_line_starts_like_a_command_to_a_ci_runner() -> None:
    at = Location("::error::x.safetensors")
    text = write_text(report(replace(missing(1), at=(at,))))
    assert text.startswith("./::error::x.safetensors: QM201")


hostile = st.text(st.characters(), max_size=1200)


@pytest.mark.parametrize("form", ["text", "github"])
@given(hostile, hostile, hostile, hostile)
def test_every_line_is_safe_and_of_a_bearable_length(
    form: str, file: str, pointer: str, name: str, message: str
) -> None:
    at = Location(file, pointer, name, (1, 2), 1, 2)
    finding = Finding("QM201", Severity.ERROR, message, message, (at, at), name, file)
    skip = Skip("QM501", message)
    places = [replace(at, tensor=f"{number}{name}") for number in range(5)]
    several = [replace(finding, at=(each,)) for each in places]
    found = Report((finding, *several), (skip,), ("QM201",), file, name, 1, 2)
    text = WRITERS[form](found)
    assert text.isascii() or text.replace("\n", "").isprintable()
    assert len(text.splitlines()) < 9
    if form == "text":
        assert max(map(len, text.splitlines())) <= LIMIT
