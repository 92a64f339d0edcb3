"""Laws of how readers match: against `re`, `fnmatch` and plain text."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qmanifest.patterns import (
    READERS,
    Pattern,
    Syntax,
    check,
    disagreements,
    match,
    matching,
)
from qmanifest.patterns.anchors import MAX_DOTS

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENTS = ["a", "b", "ab", "10", "2", "model", "layers", "é", "", "a-b", "[a]", "a{b}"]
NAMES = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=5).map(".".join)
NAME_LISTS = st.lists(NAMES, max_size=12, unique=True)
REGEXES = st.recursive(
    st.sampled_from(["a", "b", ".", "\\.", "[ab]", "[^a]", "^", "$", "\\b", "2", ".*"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        inner.map("({})".format),
        inner.map("(?:{})*".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}"])).map("".join),
    ),
    max_leaves=6,
)
FORMS: dict[Syntax, Callable[[re.Pattern[str], str], bool]] = {
    Syntax.REGEX: lambda program, name: program.fullmatch(name) is not None,
    Syntax.RE_MATCH: lambda program, name: program.match(name) is not None,
    Syntax.DYNAMIC: lambda program, name: program.match(name) is not None,
    Syntax.RE_SEARCH: lambda program, name: program.search(name) is not None,
}
MARKS = {Syntax.REGEX: "re:", Syntax.RE_MATCH: "re:", Syntax.DYNAMIC: "-:"}


def compiled(regex: str) -> re.Pattern[str]:
    """Compile what RE2 means: `$` is the end, and never before a line end."""
    try:
        return re.compile(regex.replace("$", r"\Z"), re.ASCII)
    except re.error:
        assume(False)  # noqa: FBT003 - hypothesis' own form
        raise


def is_boundary(regex: str, name: str) -> bool:
    """Ask what transformers asks, in its own words."""
    around = compiled(rf"(?:{regex})(?:(?<=\.)|(?=\.|$))")
    return around.match(name) is not None or name.endswith(regex)


@given(regex=REGEXES, names=NAME_LISTS, at_once=st.booleans())
@pytest.mark.parametrize("syntax", FORMS, ids=str)
def test_a_regex_is_matched_where_re_matches_it(
    syntax: Syntax,
    regex: str,
    names: list[str],
    at_once: bool,  # noqa: FBT001 - drawn, not passed
) -> None:
    program = compiled(regex)
    pattern = Pattern(MARKS.get(syntax, "") + regex, syntax)
    assume(check(pattern) is None)
    with mock.patch.object(matching, "_ONE_BY_ONE", 0 if at_once else 1_000):
        found = match([pattern], names).of(0)
    assert list(found) == [name for name in names if FORMS[syntax](program, name)]


@given(
    regex=st.one_of(REGEXES, NAMES, st.text("ab.*2", min_size=1, max_size=5)),
    names=NAME_LISTS,
    at_once=st.booleans(),
)
def test_a_boundary_is_what_transformers_asks(
    regex: str,
    names: list[str],
    at_once: bool,  # noqa: FBT001 - drawn, not passed
) -> None:
    expected = [name for name in names if is_boundary(regex, name)]
    pattern = Pattern(regex, Syntax.BOUNDARY)
    assume(check(pattern) is None)
    with mock.patch.object(matching, "_ONE_BY_ONE", 0 if at_once else 1_000):
        assert list(match([pattern], names).of(0)) == expected


@given(text=st.text("ab.é*?[]!-^2,{}", min_size=1, max_size=9), names=NAME_LISTS)
def test_fnmatch_is_what_fnmatch_says(text: str, names: list[str]) -> None:
    found = match([Pattern(text, Syntax.FNMATCH)], names).of(0)
    assert list(found) == [name for name in names if fnmatchcase(name, text)]


@given(text=st.text("ab.2", min_size=1, max_size=4), names=NAME_LISTS)
def test_a_suffix_is_an_end(text: str, names: list[str]) -> None:
    found = match([Pattern(text, Syntax.SUFFIX)], names).of(0)
    assert list(found) == [name for name in names if name.endswith(text)]


@given(text=NAMES.filter(bool), names=NAME_LISTS)
def test_a_segment_is_one_or_some_from_the_start(text: str, names: list[str]) -> None:
    found = match([Pattern(text, Syntax.SEGMENT)], names).of(0)
    expected = []
    for name in names:
        parts = name.split(".")
        starts = {".".join(parts[: end + 1]) for end in range(len(parts))}
        if text in parts or text in starts:
            expected.append(name)
    assert list(found) == expected


@given(text=NAMES.filter(bool), names=NAME_LISTS)
def test_a_tag_is_what_is_left_of_a_name(text: str, names: list[str]) -> None:
    found = match([Pattern(text, Syntax.TAG)], names).of(0)
    kept = re.compile(r"(?:^|\.)(?:model|layers|[0-9]+)(?=\.|\Z)")
    expected = []
    for name in names:
        # what is left out takes the dot before it along, or else the one behind
        left = kept.sub("", f".{name}").removeprefix(".")
        if left == text:
            expected.append(name)
    assert list(found) == expected


@given(text=st.text("ab.2", min_size=1, max_size=4), names=NAME_LISTS)
def test_in_a_block_names_begin_behind_its_number(text: str, names: list[str]) -> None:
    found = match([Pattern(text, Syntax.IN_BLOCK)], names).of(0)
    expected = []
    for name in names:
        parts = name.split(".")
        numbers = [at for at, part in enumerate(parts[:-1]) if part.isdigit()]
        inner = parts[numbers[0] + 1 :] if numbers else parts
        if text in ".".join(inner):
            expected.append(name)
    assert list(found) == expected


PATTERNS = st.one_of(
    st.builds(Pattern, NAMES.filter(bool), st.sampled_from(Syntax)),
    st.builds(Pattern, REGEXES, st.sampled_from(Syntax)),
)


@given(patterns=st.lists(PATTERNS, max_size=6), names=NAME_LISTS)
def test_what_is_appended_is_no_part_of_what_is_matched(
    patterns: list[Pattern], names: list[str]
) -> None:
    stored = [f"{name}.weight" for name in names] + ["a.bias", "weight"]
    found = match(patterns, stored, [".weight"] * len(patterns))
    alone = match(patterns, names)
    for number in range(len(patterns)):
        assert found.of(number) == tuple(f"{n}.weight" for n in alone.of(number))


@given(texts=st.lists(NAMES.filter(bool), max_size=5), names=NAME_LISTS)
@pytest.mark.parametrize(
    "ids",
    [
        ("vllm-awq", "transformers"),
        ("vllm-fp8", "transformers"),
        ("modelopt", "vllm-modelopt"),
        ("transformers", "vllm-bitsandbytes"),
        ("autoround", "hqq"),
    ],
    ids="-".join,
)
def test_readers_differ_where_one_alone_covers_a_name(
    ids: tuple[str, str], texts: list[str], names: list[str]
) -> None:
    pair = [READERS[each] for each in ids]
    sets = []
    usable = [
        text
        for text in texts
        if all(check(p) is None for each in pair for p in each.patterns(text))
    ]
    for reader in pair:
        covered = set[str]()
        for text in usable:
            if reader.exact_wins and text in names:
                covered.add(text)
                continue
            patterns = reader.patterns(text)
            matches = match(patterns, names)
            covered.update(n for at in range(len(patterns)) for n in matches.of(at))
        sets.append(covered)
    found = disagreements(texts, pair, names)
    told = [name for each in found for name in (*each.only_reader, *each.only_other)]
    assert sum(each.number for each in found) == len(sets[0] ^ sets[1])
    assert set(told) <= sets[0] ^ sets[1]
    for each in found:
        assert set(each.only_reader) <= sets[0]
        assert set(each.only_other) <= sets[1]


def test_only_so_many_dots_are_tried() -> None:
    few, many = "a." * MAX_DOTS + "b", "." * MAX_DOTS + "a.b"
    found = match([Pattern(r".*a.", Syntax.BOUNDARY)], [few, many, "a.b"]).of(0)
    assert found == (few, "a.b")
