"""Laws of matching: against slow references that share no code with it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import product
from unittest import mock

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.patterns import (
    Pattern,
    Syntax,
    check,
    literal_names,
    match,
    matching,
    read_entry,
)
from qmanifest.patterns.compiling import compile_pattern

SEGMENTS = ["a", "b", "ab", "10", "2", "02", "é", "", "a-b", "x\n", "[a]", "a{b", "c,d"]
NAMES = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=4).map(".".join)
NAME_LISTS = st.lists(NAMES, max_size=12, unique=True)
PLAIN_GLOBS = st.text("ab.é*?[]!-^2,", max_size=9)
GROUPS: list[tuple[str, list[str]]] = [
    ("{a,b}", ["a", "b"]),
    ("{a,,a-b}", ["a", "", "a-b"]),
    ("{1..3}", ["1", "2", "3"]),
    ("{09..11}", ["09", "10", "11"]),
    ("{0..2,é}", ["0", "1", "2", "é"]),
    ("{a.b,2.*}", ["a.b", "2.*"]),
    ("{a,{b,[!a]}}", ["a", "b", "[!a]"]),
    ("{a{1..2},?}", ["a1", "a2", "?"]),
]
GROUPED = st.lists(
    st.one_of(
        st.sampled_from(GROUPS),
        st.sampled_from(["a", ".", "*", "?", "[ab]", "2", "[!a]"]).map(
            lambda text: (text, [text])
        ),
    ),
    max_size=5,
)
REGEXES = st.recursive(
    st.sampled_from(
        ["a", "b", ".", "\\.", "[ab]", "[^a]", "^", "$", "\\b", "2", "\\d"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        inner.map("({})".format),
        inner.map("(?:{})*".format),
        inner.map("(?i:{})".format),
        st.tuples(inner, st.sampled_from("*+?")).map("".join),
        st.tuples(inner, st.sampled_from(["{2}", "{1,2}", "{0,}"])).map("".join),
    ),
    max_leaves=6,
)


@given(text=PLAIN_GLOBS, names=NAME_LISTS)
def test_a_glob_without_braces_is_what_fnmatch_says(
    text: str, names: list[str]
) -> None:
    found = match([Pattern(text, Syntax.GLOB)], names).of(0)
    usable = bool(text)
    assert list(found) == [
        name for name in names if usable and (name == text or fnmatchcase(name, text))
    ]


@given(parts=GROUPED, names=NAME_LISTS)
def test_braces_are_the_union_of_their_expansions(
    parts: list[tuple[str, list[str]]], names: list[str]
) -> None:
    text = "".join(written for written, _ in parts)
    globs = ["".join(options) for options in product(*(each for _, each in parts))]
    expected = [
        name
        for name in names
        if text and (name == text or any(fnmatchcase(name, glob) for glob in globs))
    ]
    assert list(match([Pattern(text, Syntax.GLOB)], names).of(0)) == expected
    listed = literal_names(Pattern(text, Syntax.GLOB))
    if text and listed is not None:
        assert list(listed) == list(dict.fromkeys(globs))


@given(low=st.integers(0, 1200), high=st.integers(0, 1200), width=st.integers(1, 5))
def test_a_range_before_a_wildcard_means_the_same_numbers(
    low: int, high: int, width: int
) -> None:
    text = f"h.{{{low:0{width}}..{high:0{width}}}}"
    listed = literal_names(read_entry(text)) or ()
    names = [f"h.{number:0{size}}" for number in range(1300) for size in (1, 2, 4)]
    accepts = compile_pattern(read_entry(f"{text}[.]")).accepts
    assert {name for name in names if accepts(f"{name}.")} == {*names}.intersection(
        listed
    )


@given(regex=REGEXES, names=NAME_LISTS, at_once=st.booleans())
def test_a_regex_is_what_re2_says_of_each_name(
    regex: str,
    names: list[str],
    at_once: bool,  # noqa: FBT001 - drawn, not passed
) -> None:
    pattern = read_entry(f"re:{regex}")
    with mock.patch.object(matching, "_ONE_BY_ONE", 0 if at_once else 1_000):
        found = match([pattern], names).of(0)
    options = re2.Options()
    options.log_errors = False
    try:
        program = re2.compile(regex, options)
    except re2.error:
        assert check(pattern) is not None
        return
    usable = check(pattern) is None
    assert usable == bool(regex)
    assert list(found) == [name for name in names if usable and program.fullmatch(name)]


@given(
    texts=st.lists(
        st.one_of(PLAIN_GLOBS, REGEXES.map("re:{}".format), NAMES, st.just("a.{b,2}*")),
        max_size=4,
    ),
    names=NAME_LISTS,
)
def test_an_index_of_segments_changes_nothing(
    texts: list[str], names: list[str]
) -> None:
    syntaxes = (Syntax.SUBSTRING, Syntax.PREFIX)
    patterns = [read_entry(text, syntax) for text in texts for syntax in syntaxes]
    found = []
    for many in (0, len(patterns) + 1):
        with mock.patch.object(matching, "_MANY", many):
            matches = match(patterns, names)
        found.append([matches.of(number) for number in range(len(patterns))])
    assert found[0] == found[1]


@given(text=st.text("ab.2", min_size=1, max_size=4), names=NAME_LISTS)
@pytest.mark.parametrize("syntax", [Syntax.SUBSTRING, Syntax.PREFIX, Syntax.EXACT])
def test_plain_text_is_found_where_it_is(
    syntax: Syntax, text: str, names: list[str]
) -> None:
    start = {Syntax.SUBSTRING: "(?s:.*)", Syntax.PREFIX: "", Syntax.EXACT: ""}[syntax]
    end = "" if syntax is Syntax.EXACT else "(?s:.*)"
    slow = re.compile(f"{start}{re.escape(text)}{end}")
    found = match([Pattern(text, syntax)], names).of(0)
    assert list(found) == [name for name in names if slow.fullmatch(name)]


ENTRIES = st.one_of(
    NAMES,
    PLAIN_GLOBS,
    REGEXES.map("re:{}".format),
    st.sampled_from([g for g, _ in GROUPS]),
)


@given(texts=st.lists(ENTRIES, max_size=8), names=NAME_LISTS)
@pytest.mark.parametrize("plain", [Syntax.EXACT, Syntax.SUBSTRING, Syntax.PREFIX])
def test_many_patterns_match_what_each_does_alone(
    plain: Syntax, texts: list[str], names: list[str]
) -> None:
    patterns = [read_entry(text, plain) for text in texts]
    together = match(patterns, names)
    alone = [
        {name for name in names if match([pattern], [name]).of(0)}
        for pattern in patterns
    ]
    assert [set(together.of(number)) for number in range(len(patterns))] == alone
    for name in names:
        claims = tuple(number for number, found in enumerate(alone) if name in found)
        assert together.claims(name) == claims
        assert (name in together.contested) == (len(claims) > 1)
    assert together.dead == tuple(n for n, found in enumerate(alone) if not found)


@given(text=st.text(max_size=30), syntax=st.sampled_from(Syntax), names=NAME_LISTS)
def test_no_text_breaks_anything(text: str, syntax: Syntax, names: list[str]) -> None:
    pattern = Pattern(text, syntax)
    matches = match([pattern, read_entry(text)], [*names, text])
    if check(pattern) is not None:
        assert 0 in matches.dead
    elif syntax is not Syntax.REGEX:
        assert text in matches.of(0)
