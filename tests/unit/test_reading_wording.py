"""Messages write counts, names and values in one way, short and in plain ASCII."""

from __future__ import annotations

import pytest

from qmanifest.reading.wording import character, count, listing, quoted, shown


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "byte", "0 bytes"), (1, "entry", "1 entry"), (2000, "entry", "2,000 entries")],
)
def test_count(number: int, noun: str, text: str) -> None:
    assert count(number, noun) == text


def test_quoted_escapes_controls_and_cuts_long_text() -> None:
    assert quoted("a\x1b[2J\u202e\n") == r"'a\x1b[2J\u202e\n'"
    assert len(quoted("x" * 10_000)) < 200
    assert "10,000 characters" in quoted("x" * 10_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (4.0, "4.0"),
        ("a", '"a"'),
        ({}, "an empty object"),
        ({"a": 1}, "an object"),
        ([[4]], "[...]"),
        ([1, [2], None], "[1, null, ...]"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
        ([], "[]"),
    ],
)
def test_shown(value: object, text: str) -> None:
    assert shown(value) == text


def test_shown_is_short() -> None:
    assert len(shown("x" * 10_000)) < 250
    assert len(shown(10**640)) < 250


def test_listing_counts_what_it_leaves_out() -> None:
    assert listing([]) == ""
    assert listing(list("abcde")) == "'a', 'b', 'c', 'd', 'e'"
    assert listing([str(n) for n in range(2005)]).endswith("'4' and 2,000 more")


@pytest.mark.parametrize(
    ("char", "text"),
    [
        ("x", "'x'"),
        ("'", '"\'"'),
        (" ", "U+0020 SPACE"),
        ("\t", "U+0009 TAB"),
        ("\x01", "U+0001 unnamed character"),
        ("\u00a0", "U+00A0 NO-BREAK SPACE"),
        ("\U0001f600", "U+1F600 GRINNING FACE"),
    ],
)
def test_character(char: str, text: str) -> None:
    assert character(char) == text
