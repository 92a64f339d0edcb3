"""What many patterns match among many names."""

from __future__ import annotations

import pytest

from qmanifest.patterns import Pattern, Syntax, match, read_entry
from qmanifest.patterns import matching as matching_module

PROJECTIONS = ("gate_proj", "up_proj", "down_proj")
NAMES = [
    f"model.layers.{layer}.mlp.experts.{expert}.{projection}.weight"
    for layer in range(10)
    for expert in range(200)
    for projection in PROJECTIONS
] + ["model.embed_tokens.weight", "lm_head.weight"]


def test_matches_tell_both_ways() -> None:
    patterns = [read_entry(text) for text in ("b.*", "a", "dead", "*.x", "re:(")]
    matches = match(patterns, ["b.x", "a", "c.x", "b.y", "z"])
    assert [matches.of(number) for number in range(5)] == [
        ("b.x", "b.y"),
        ("a",),
        (),
        ("b.x", "c.x"),
        (),
    ]
    assert matches.claims("b.x") == (0, 3)
    assert matches.claims("a") == (1,)
    assert matches.claims("z") == matches.claims("unheard of") == ()
    assert matches.dead == (2, 4)
    assert matches.contested == ("b.x",)


def test_names_are_found_in_their_order_and_once() -> None:
    matches = match([read_entry("*")], iter(["c", "a", "b", "a"]))
    assert matches.of(0) == ("c", "a", "b")


def test_repeated_patterns_each_claim() -> None:
    matches = match([read_entry("a*"), read_entry("a*"), read_entry("ab")], ["ab"])
    assert matches.claims("ab") == (0, 1, 2)
    assert matches.contested == ("ab",)


def test_nothing_meets_nothing() -> None:
    assert match([], ["a"]).dead == ()
    matches = match([read_entry("*"), read_entry("re:.*"), read_entry("a")], [])
    assert matches.dead == (0, 1, 2)
    assert matches.contested == ()


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        (Pattern("experts.7.", Syntax.SUBSTRING), 30),
        (Pattern("experts.7", Syntax.SUBSTRING), 330),
        (Pattern("embed", Syntax.SUBSTRING), 1),
        (Pattern(".", Syntax.SUBSTRING), 6_002),
        (Pattern("model.layers.3.", Syntax.PREFIX), 600),
        (Pattern("model.layers.3", Syntax.PREFIX), 600),
        (Pattern("layers", Syntax.PREFIX), 0),
        (read_entry("*.experts.7.*"), 30),
        (read_entry("*gate*"), 2_000),
        (read_entry("model.layers.{0..3}.*.{gate,up}_proj.weight"), 1_600),
        (read_entry("model.layers.{0..9}.mlp.experts.{0..199}.{gate_proj,x}.*"), 2_000),
        (read_entry("*.experts.1?.*[!n]_proj.weight"), 200),
        (read_entry("re:.*"), 6_002),
        (read_entry("re:.*\\.[0-9]{3}\\..*"), 3_000),
        (read_entry("re:model.layers.[02-9].mlp.experts.\\d+.(gate|up)_proj.*"), 3_600),
        (read_entry("re:\\Amodel[^0-9]*4[^0-9]*\\d+[^0-9]*\\z"), 600),
        (read_entry("re:(?:model|lm_head)\\.[a-z_]*(?:\\.weight)?"), 2),
    ],
    ids=lambda value: value.text if isinstance(value, Pattern) else "",
)
def test_number_of_matches(pattern: Pattern, number: int) -> None:
    assert len(match([pattern], NAMES).of(0)) == number


def test_one_pass_over_all_lines_finds_names_with_line_ends_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matching_module, "_ONE_BY_ONE", 0)
    names = ["a1", "", "b\n1", "a\n", "é2", "2", "\n", "x"]
    assert match([read_entry("re:[^x]*[0-9]")], names).of(0) == (
        "a1",
        "b\n1",
        "é2",
        "2",
    )
    assert match([read_entry("re:[^0-9]*")], names).of(0) == ("", "a\n", "\n", "x")
    assert match([read_entry("re:a?$")], names).of(0) == ("",)
    assert match([read_entry("?[!0]*")], names).of(0) == ("a1", "b\n1", "a\n", "é2")
    assert match([read_entry("re:\\C*")], ["a", "b"]).of(0) == ("a", "b")
    assert match([read_entry("re:x*")], ["\n"]).of(0) == ()
    assert match([read_entry("re:x*")], ["x", ""]).of(0) == ("x", "")
    assert match([read_entry("re:x*")], [""]).of(0) == ("",)


def test_names_that_are_no_text_are_survived() -> None:
    names = ["a.\ud800", "a.b", "\0"]
    assert match([read_entry("a.*")], names).of(0) == ("a.\ud800", "a.b")
    assert match([read_entry("a.[b]")], names).of(0) == ("a.b",)
    assert match([read_entry("re:a\\.b|\\x00")], names).of(0) == ("a.b", "\0")


HOSTILE = [  # with the places of the names that they match
    ("*a*a*a*a*a*a*b", set[int]()),
    ("*" + "a*" * 400 + "b", set()),
    ("*" + "a*" * 400, {0, 1}),
    ("*[a-b]*[a-b]*[a-b]*[a-b]*[a-b]*[.]", {1}),
    ("{a,aa}" * 40 + "*b", set()),
    ("{a,aa}" * 13, set()),
    ("re:^(a+)+$", {0, 3}),
    ("re:(a|aa)*b", set()),
    ("re:a*a*a*a*a*a*a*a*b", set()),
    ("re:(x*a*)*b", set()),
    ("re:(?:a?){150}a{150}", {3}),
]


@pytest.mark.parametrize(("text", "places"), HOSTILE)
def test_hostile_patterns_end(
    text: str, places: set[int], capfd: pytest.CaptureFixture[str]
) -> None:
    names = ["a" * 2_000, "a" * 1_023 + ".", "a" * 40 + ".weight", "a" * 200]
    found = {names.index(name) for name in match([read_entry(text)], names).of(0)}
    assert found == places
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "syntax", [Syntax.RE_MATCH, Syntax.RE_SEARCH, Syntax.DYNAMIC, Syntax.BOUNDARY]
)
@pytest.mark.parametrize(
    ("regex", "found"),
    [
        ("(a+)+$", True),
        ("(a|aa)*b", False),
        ("a*a*a*a*a*a*a*a*b", False),
        ("(x*a*)*b", False),
        (".*a[a.]{400}[.b]", True),
    ],
)
def test_hostile_expressions_end_wherever_they_match(
    syntax: Syntax, regex: str, *, found: bool
) -> None:
    names = ["a" * 2_000, "a" * 990 + "." * 33, "a." * 500]
    assert bool(match([Pattern(regex, syntax)], names).of(0)) == found


def test_two_thousand_globs_meet_two_thousand_names() -> None:
    names = [f"head.weight.{number}" for number in range(2_000)]
    globs = [f"*.weight.{number}" for number in range(2_000)]
    matches = match([read_entry(text) for text in globs], names)
    assert matches.dead == ()
    assert matches.contested == ()
    assert matches.of(1_999) == ("head.weight.1999",)


def test_a_hundred_thousand_entries_meet_as_many_names() -> None:
    names = [f"model.layers.{number}.weight" for number in range(100_000)]
    matches = match([read_entry(name) for name in reversed(names)], names)
    assert matches.dead == ()
    assert matches.contested == ()
    assert matches.claims(names[0]) == (99_999,)
