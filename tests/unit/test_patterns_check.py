"""Why a pattern cannot be used, and that nothing hostile is ever costly to refuse."""

from __future__ import annotations

import pytest

from qmanifest.patterns import Pattern, Syntax, check, match, read_entry
from qmanifest.patterns.globs import MAX_ALTERNATIVES, MAX_DEPTH
from qmanifest.patterns.syntax import MAX_TEXT_BYTES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("re:", "empty"),
        ("re:(h)\\1ead", "back-reference \\1 is outside the safe subset"),
        ("re:(?=a)b", "look-around (?= is outside the safe subset"),
        ("re:a(?!b)", "look-around (?! is outside the safe subset"),
        ("re:(?<=a)b", "look-around (?<= is outside the safe subset"),
        ("re:(?>a)b", "outside the safe subset"),
        ("re:(?P<n>a)(?P=n)", "outside the safe subset"),
        ("re:((a{1000}){1000}){1000}", "too large: invalid repetition size"),
        ("re:.{1000}", "too large: it compiles to"),
        ("re:(", "not a valid regular expression: missing )"),
        ("re:a)(b", "not a valid regular expression"),
        ("re:" + "(" * 900, "not a valid regular expression: missing )"),
        ("re:\\", "not a valid regular expression: trailing \\"),
        ("re:[b-a]", "not a valid regular expression: invalid character class range"),
        ("re:a**", "not a valid regular expression: bad repetition"),
        ("re:\ud800", "surrogate"),
        ("*\udc00", "surrogate"),
        ("{0..10000}", "more than 10,000"),
        ("{0..9999,x}", "more than 10,000"),
        ("{0..5000}.{0..5000}", "more than 10,000"),
        ("{0.." + "9" * 1000 + "}", "more than 10,000"),
        ("{a,{b,{c,{d,{e,f}}}}}", "nested deeper than 4 levels"),
        ("*" + "?[!a]" * 200, "too large: it compiles to"),
        ("x" * (MAX_TEXT_BYTES + 1), "1,025 bytes, more than 1,024"),
        ("é" * (MAX_TEXT_BYTES // 2 + 1), "1,026 bytes, more than 1,024"),
    ],
)
def test_reason(text: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    pattern = read_entry(text)
    reason = check(pattern)
    assert reason is not None
    assert said in reason
    assert len(reason) < 200
    assert match([pattern], [text, "a", "head", "hhead"]).dead == (0,)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "x" * MAX_TEXT_BYTES,
        "re:" + "x" * (MAX_TEXT_BYTES - 3),
        "{0..9999}",
        "{0..4999}.{0..4999}",
        "{a,{b,{c,{d,e}}}}",
        "{" * 500 + "}" * 500,
        "*" * MAX_TEXT_BYTES,
        "*a" * 500,
        "re:^(a+)+$",
        "re:a*a*a*a*a*a*a*a*b",
        "re:\\p{L}+",
        "re:(?P<layer>[0-9]+)",
        "[",
        "{",
        "}",
    ],
)
def test_usable(text: str) -> None:
    assert check(read_entry(text)) is None


@pytest.mark.parametrize("syntax", list(Syntax))
def test_every_syntax_refuses_what_no_name_can_be(syntax: Syntax) -> None:
    assert check(Pattern("", syntax)) is not None
    assert check(Pattern("a" * (MAX_TEXT_BYTES + 1), syntax)) is not None
    assert check(Pattern("a\udfff", syntax)) is not None
    assert check(Pattern("a", syntax)) is None


def test_the_limits_are_the_documented_ones() -> None:
    assert (MAX_TEXT_BYTES, MAX_ALTERNATIVES, MAX_DEPTH) == (1_024, 10_000, 4)
