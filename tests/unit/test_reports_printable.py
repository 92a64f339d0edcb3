"""`printable` and `shorten`: what people see of hostile and long text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.reports.printable import printable
from qmanifest.reports.shorten import shorten


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("\u202eevil\u2066", r"\u202eevil\u2066"),
        ("\u200b\u200d\ufeff\u00ad", r"\u200b\u200d\ufeff\xad"),
        ("\u2028\u2029\x85", r"\u2028\u2029\x85"),
        ("\ud800\udcff", r"\ud800\udcff"),
        ("\u00a0\u3000", r"\xa0\u3000"),
        ("\u00ea is not e\u0302", "\u00ea is not e\\u0302"),
        ("\u3164\ufe0f\U000e0061", r"\u3164\ufe0f\U000e0061"),
        ("\u00e9 \u6f22 'quoted' [/red]", "\u00e9 \u6f22 'quoted' [/red]"),
    ],
)
def test_what_cannot_be_seen_is_escaped(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.text(st.characters(), max_size=60))
def test_result_is_one_visible_line_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
    shown.encode()  # no half surrogates


def test_repr_is_not_escaped_twice() -> None:
    assert printable(repr("a\x1b\\")) == r"'a\x1b\\'"


def test_short_text_stays() -> None:
    assert shorten("8-bit at group 32", 40) == "8-bit at group 32"


def test_lists_are_cut_first() -> None:
    names = ", ".join(f"'layer.{number}'" for number in range(100))
    expected = "missing: 'layer.0', 'layer.1', 'layer.2' and 97 more"
    assert shorten(f"missing: {names}", 100) == expected


def test_long_names_lose_their_middle() -> None:
    text = f"promised tensor 'a{'x' * 1000}b' is in no file"
    cut = shorten(text, 200)
    assert cut.startswith("promised tensor 'axxx")
    assert cut.endswith("xxb' is in no file")


def test_numbers_are_never_cut() -> None:
    numbers = " ".join(str(10**8 + number) for number in range(60))
    cut = shorten(numbers, 103)
    assert {len(word) for word in cut.split() if word != "[...]"} == {9}


@given(st.text("a1 .',b", max_size=3000), st.integers(40, 400))
def test_cut_text_fits(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
