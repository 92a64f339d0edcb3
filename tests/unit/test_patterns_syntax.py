"""How the text of a config entry is read: every rule of globs, one by one."""

from __future__ import annotations

import pickle

import pytest
from pydantic import TypeAdapter

from qmanifest.patterns import Pattern, Syntax, literal_names, match, read_entry


def matched(text: str, *names: str) -> list[str]:
    return list(match([read_entry(text)], names).of(0))


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("model.norm.weight", Syntax.EXACT),
        ("a}b]c!,-", Syntax.EXACT),
        ("", Syntax.EXACT),
        ("layers.*", Syntax.GLOB),
        ("layers.?", Syntax.GLOB),
        ("layers.[01]", Syntax.GLOB),
        ("layers.{0,1}", Syntax.GLOB),
        ("re:layers.*", Syntax.REGEX),
        ("re:plain", Syntax.REGEX),
        ("RE:plain", Syntax.EXACT),
        ("x.re:y", Syntax.EXACT),
    ],
)
def test_text_tells_the_syntax(text: str, syntax: Syntax) -> None:
    assert read_entry(text) == Pattern(text, syntax)


@pytest.mark.parametrize("plain", [Syntax.EXACT, Syntax.SUBSTRING, Syntax.PREFIX])
def test_an_entry_without_metacharacters_means_what_its_dialect_says(
    plain: Syntax,
) -> None:
    assert read_entry("LayerNorm", plain) == Pattern("LayerNorm", plain)
    assert read_entry("Layer*", plain).syntax is Syntax.GLOB
    assert read_entry("re:Layer", plain).syntax is Syntax.REGEX


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("a.*", ["a.", "a.b", "a.b.c", "a.b\n"], ["a", "b.a.b"]),
        ("*.weight", [".weight", "a.b.weight"], ["weight", "a.weight.b"]),
        ("a*b*c", ["abc", "a.b.c", "abbbcc"], ["acb", "ab", "cab"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("**", ["", "a"], []),
        ("a.?", ["a.b", "a.é", "a..", "a.\n"], ["a.", "a.bc", "a.e\u0301"]),
        ("h[0-2]", ["h0", "h2"], ["h3", "h", "h01"]),
        ("h[!0-2]", ["h3", "hx"], ["h0", "h"]),
        ("h[]x]", ["h]", "hx"], ["h"]),
        ("h[!]x]", ["hy"], ["h]", "hx"]),
        ("h[a-]", ["ha", "h-"], ["hb"]),
        ("h[^a]", ["h^", "ha"], ["hb"]),
        ("h[z-a]", [], ["hz", "ha", "hm"]),
        ("h[!z-a]", ["hz", "h!"], ["h"]),
        ("h[é-ü]", ["hö"], ["he"]),
        ("h[\\]", ["h\\"], ["h"]),
        ("a.{b,c}.d", ["a.b.d", "a.c.d"], ["a.bc.d", "a..d"]),
        ("a{,.b}", ["a", "a.b"], ["a."]),
        ("a.{2..4}", ["a.2", "a.3", "a.4"], ["a.1", "a.5", "a.02", "a.2..4"]),
        ("a.{4..2}", ["a.2", "a.3", "a.4"], ["a.5"]),
        ("a.{08..11}", ["a.08", "a.09", "a.10", "a.11"], ["a.8", "a.011"]),
        ("a.{1..010}", ["a.001", "a.010"], ["a.1", "a.10"]),
        ("a.{0..10}", ["a.0", "a.10"], ["a.00"]),
        ("a.{0..2,7,k}", ["a.1", "a.7", "a.k"], ["a.3", "a.0..2"]),
        ("{a,b}.{0..1}", ["a.0", "b.1"], ["a.b"]),
        ("{a,b{0..1,x}}", ["a", "b0", "bx"], ["b", "b2"]),
        ("{[a,b],c}", ["a", ",", "b", "c"], ["[a", "b]"]),
        ("{*,b}x", ["x", "yx", "bx"], ["y"]),
        ("h.{9..101}.*", ["h.9.", "h.10.x", "h.99.x", "h.101.x"], ["h.8.x", "h.102.x"]),
        ("h.{095..105}?", ["h.095x", "h.100x", "h.105x"], ["h.95x", "h.106x"]),
        ("h.{17..17}?", ["h.17x"], ["h.18x", "h.7x"]),
    ],
)
def test_glob(text: str, yes: list[str], no: list[str]) -> None:
    assert matched(text, *yes, *no) == yes


@pytest.mark.parametrize(
    "text",
    [
        "a{b",
        "a{b}",
        "a{}",
        "a{{b}",
        "{a{b}",
        "a[b",
        "a[",
        "a[]",
        "a[!]",
        "{1..}",
        "{..2}",
    ],
)
def test_braces_and_brackets_that_are_none_are_text(text: str) -> None:
    others = ("ab", "a", "b", "1", "a{b,c", "12")
    assert matched(text, text, *others) == [text]
    assert literal_names(read_entry(text)) == (text,)


@pytest.mark.parametrize("text", ["{1..5..2}", "{a..e}", "{-1..2}", "{1.5..2}"])
def test_ranges_are_of_whole_decimal_numbers_only(text: str) -> None:
    assert matched(text, "1", "3", "a", "b", "0", text) == [text]


def test_wildcards_inside_of_literal_braces_still_count() -> None:
    assert matched("{a*}", "{a}", "{abc}", "a", "{a*}") == ["{a}", "{abc}", "{a*}"]


@pytest.mark.parametrize("name", ["a[0].w", "a{0,1}", "a?", "h[z-a]"])
def test_a_name_that_is_the_text_itself_is_matched_too(name: str) -> None:
    assert name in matched(name, name, "other")


def test_regular_expressions_match_whole_names() -> None:
    names = ("head", "head.weight", "xhead", "HEAD")
    assert matched("re:head", *names) == ["head"]
    assert matched("re:.*head.*", *names) == ["head", "head.weight", "xhead"]
    assert matched("re:^(?i)head$", *names) == ["head", "HEAD"]
    assert matched("re:head|xhead", *names) == ["head", "xhead"]
    assert list(match([Pattern("he.d", Syntax.REGEX)], names).of(0)) == ["head"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (read_entry("a.b"), ("a.b",)),
        (read_entry("a.{x,y}.{1..2}"), ("a.x.1", "a.x.2", "a.y.1", "a.y.2")),
        (read_entry("a.{09..10}"), ("a.09", "a.10")),
        (read_entry("{a,b,a}"), ("a", "b")),
        (read_entry("a.*"), None),
        (read_entry("a.?"), None),
        (read_entry("a.[01]"), None),
        (read_entry("a.{b,*}"), None),
        (read_entry("re:a"), None),
        (Pattern("a", Syntax.SUBSTRING), None),
        (Pattern("a", Syntax.PREFIX), None),
        (read_entry("re:("), ()),
        (read_entry(""), ()),
    ],
)
def test_literal_names(pattern: Pattern, names: tuple[str, ...] | None) -> None:
    assert literal_names(pattern) == names


def test_literal_names_keep_their_limit() -> None:
    pattern = read_entry("{0..9}{0..9}")
    assert literal_names(pattern, limit=99) is None
    assert literal_names(pattern, limit=100) is not None
    assert literal_names(read_entry("{0..9999}")) is not None
    assert literal_names(read_entry("{0..2999}{0..2999}{0..2999}")) is None


def test_a_pattern_is_plain_data() -> None:
    pattern = read_entry("a.*")
    adapter = TypeAdapter(Pattern)
    assert adapter.dump_python(pattern, mode="json") == {
        "text": "a.*",
        "syntax": "glob",
    }
    assert adapter.validate_json('{"text": "a.*", "syntax": "glob"}') == pattern
    assert pickle.loads(pickle.dumps(pattern)) == pattern  # noqa: S301 - our own bytes
