"""Lines that claim names: expanded, kept as entries, and written back as text."""

from __future__ import annotations

import pytest

from qmanifest.dialects.base import Place
from qmanifest.dialects.lowering.claims import Claim, as_entry, expand, is_exact
from qmanifest.dialects.lowering.whole_names import as_whole_name
from qmanifest.errors import EmitError
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Entry
from qmanifest.patterns import Pattern, Syntax, match, read_entry

PLACE = Place("config.json", ("quantization",))


def claim(text: str, appended: str = "") -> Claim:
    return Claim(("kept", 0), read_entry(text), "keep", Severity.NOTE, appended)


def test_entries_say_where_they_come_from_and_what_they_match() -> None:
    (entry,), defects = expand([claim("a.*")], PLACE, ["a.b", "c", "a.d"])
    assert entry == Entry(
        "/quantization/kept/0",
        Pattern("a.*", Syntax.GLOB),
        "keep",
        ("a.b", "a.d"),
        Severity.NOTE,
    )
    assert defects == ()


def test_without_names_patterns_go_as_far_as_they_are_bounded() -> None:
    texts = ["x", "{a,b}.{0..1}", "a.*", "re:a", "?"]
    entries, _ = expand([claim(text) for text in texts], PLACE, None)
    assert [entry.matches for entry in entries] == [
        ("x",),
        ("a.0", "a.1", "b.0", "b.1"),
        (),
        (),
        (),
    ]


def test_what_is_appended_is_matched_and_kept_apart() -> None:
    (entry,), _ = expand([claim("a.b", ".weight")], PLACE, ["a.b", "a.b.weight"])
    assert entry.pattern.text == "a.b"
    assert entry.appended == ".weight"
    assert entry.matches == ("a.b.weight",)


def test_patterns_are_about_names_without_what_is_appended() -> None:
    names = ["a.b.weight", "a.weight", "b.bias", "weight"]
    lines = [
        Claim(("kept", 0), Pattern(text, syntax), "keep", None, ".weight")
        for text, syntax in [
            ("re:.*b", Syntax.REGEX),
            ("weight", Syntax.SUBSTRING),
            ("b", Syntax.SUFFIX),
            ("a", Syntax.PREFIX),
            ("a.{b,c}", Syntax.GLOB),
            ("", Syntax.EXACT),
        ]
    ]
    entries, _ = expand(lines, PLACE, [*names, ".weight"])
    assert [entry.matches for entry in entries] == [
        ("a.b.weight",),
        (),
        ("a.b.weight",),
        ("a.b.weight", "a.weight"),
        ("a.b.weight",),
        (".weight",),
    ]
    entries, _ = expand(lines[4:], PLACE, None)
    assert [entry.matches for entry in entries] == [
        ("a.b.weight", "a.c.weight"),
        (".weight",),
    ]


@pytest.mark.parametrize(
    ("reader", "text", "found"),
    [
        ("vllm-modelopt", "a*", ("a.b", "a")),
        ("vllm-modelopt", "b", ("a.b", "b")),
        ("autoround", "b", ("b",)),
        ("autoround", "b$", ("a.b", "b")),
    ],
)
def test_a_reader_says_how_a_line_is_read(
    reader: str, text: str, found: tuple[str, ...]
) -> None:
    pattern = Pattern(text, Syntax.FNMATCH)
    line = Claim(("kept", 0), pattern, "keep", None, ".weight", reader, ("mlx",))
    names = [f"{name}.weight" for name in ("a.b", "b", "a", "c")]
    (entry,), _ = expand([line], PLACE, names)
    assert sorted(entry.matches) == sorted(f"{name}.weight" for name in found)
    assert (entry.reader, entry.also_read) == (reader, ("mlx",))


def test_unusable_patterns_match_nothing_and_are_reported_in_place() -> None:
    lines = [claim("re:("), claim("b"), claim("re:(?<=a)b")]
    entries, defects = expand(lines, PLACE, ["b"])
    assert [entry.matches for entry in entries] == [(), ("b",), ()]
    assert [defect.kind for defect in defects] == [DefectKind.BAD_PATTERN] * 2
    assert all(d.problem.at[0].pointer == "/quantization/kept/0" for d in defects)
    assert "look-around" in (defects[1].problem.hint or "")


def test_no_claims() -> None:
    assert expand([], PLACE, ["a"]) == ((), ())


@pytest.mark.parametrize(
    ("text", "exact"), [("a.b", True), ("a.*", False), ("re:a", False), ("a[0]", False)]
)
def test_is_exact(text: str, *, exact: bool) -> None:
    (entry,), _ = expand([claim(text)], PLACE, None)
    assert is_exact(entry) == exact


ODD = ("a", "a.b", "a[0]", "*", "re:x", "a\\d", "ö→{1..2}", "a b\n?", "re:", "+", "$|^")


@pytest.mark.parametrize("name", ODD)
def test_a_name_as_an_entry_means_itself_alone(name: str) -> None:
    pattern = read_entry(as_entry(name))
    matches = match([pattern], [*ODD, name + "x", "x" + name, "a0", "x", "ad"])
    assert matches.of(0) == (name,)


@pytest.mark.parametrize("text", ODD)
def test_a_substring_as_a_pattern_of_whole_names(text: str) -> None:
    pattern = read_entry(as_whole_name(Pattern(text, Syntax.SUBSTRING)))
    names = [text, f"x{text}", f"{text}\n.y", f"é{text}é", "zzz", "a0", "x1", "d"]
    expected = tuple(name for name in names if text in name)
    assert match([pattern], names).of(0) == expected


def test_other_patterns_stay_as_they_are() -> None:
    for text in ("a.b", "a.*", "re:a.*"):
        assert as_whole_name(read_entry(text)) == text


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        (Syntax.TAG, "a"),
        (Syntax.SEGMENT, "a"),
        (Syntax.IN_BLOCK, "a"),
        (Syntax.FNMATCH, "{a}*"),
        (Syntax.BOUNDARY, "a.*"),
        (Syntax.RE_SEARCH, "a$"),
        (Syntax.RE_MATCH, "re:\\Qa"),
    ],
)
def test_some_patterns_have_no_words_for_whole_names(syntax: Syntax, text: str) -> None:
    with pytest.raises(EmitError, match=syntax):
        as_whole_name(Pattern(text, syntax), ".weight")
