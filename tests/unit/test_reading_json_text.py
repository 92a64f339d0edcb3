"""JSON is read strictly, and what is refused is named with its place."""

from __future__ import annotations

import gc

import pytest

from qmanifest.findings import Defect, DefectKind, Location, Severity
from qmanifest.reading import limits
from qmanifest.reading.json_text import parse_json


def refusal(data: str | bytes) -> Defect:
    encoded = data.encode() if isinstance(data, str) else data
    parsed = parse_json(encoded, "c.json")
    assert parsed.value is None
    assert not parsed.readable
    (defect,) = parsed.defects
    assert defect.problem.hint
    assert defect.problem.at[0].file == "c.json"
    return defect


def place(defect: Defect) -> tuple[int | None, int | None]:
    return defect.problem.at[0].line, defect.problem.at[0].column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2.5, 1e3, true, null, "\\u00e4\\ud83d\\ude00"]}', None),
        (" [ ] \n", []),
        ("null", None),
        ("-0", 0),
        ('"a\\"]}"', 'a"]}'),
        ('{"\\\\": "\\\\\\""}', {"\\": '\\"'}),
    ],
)
def test_valid_text_has_its_value_and_no_defect(text: str, value: object) -> None:
    parsed = parse_json(text.encode(), "c.json")
    assert parsed.readable
    assert parsed.defects == ()
    assert parsed.text == text
    if isinstance(parsed.value, dict) and "a" in parsed.value:
        value = {"a": [1, -2.5, 1000.0, True, None, "ä\U0001f600"]}
    assert parsed.value == value


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ("", 1, 1, "empty", "again"),
        (" \n ", 1, 1, "white space", "again"),
        ("{", 1, 2, "ends where a key", "end is missing"),
        ('{"a": [1, 2', 1, 12, "ends where ','", "end is missing"),
        ('{"a": 1} x', 1, 10, "expected the end of the file", "one JSON value"),
        ('{"a": 1,\n}', 1, 8, "a comma stands before", "remove the comma"),
        ("[1, 2 ,\n\n]", 1, 7, "a comma stands before", "remove the comma"),
        ('{\n "a": 1, // x\n "b": 2}', 2, 10, "'/'", "comment"),
        ("[1 /* x */]", 1, 4, "'/'", "comment"),
        ("# x\n[]", 1, 1, "'#'", "comment"),
        ("{'a': 1}", 1, 2, '"\'"', "double quotes"),
        ("{\u201ca\u201d: 1}", 1, 2, "U+201C LEFT DOUBLE QUOTATION MARK", "straight"),
        ('{"a":\u00a01}', 1, 6, "U+00A0 NO-BREAK SPACE", "remove this character"),
        ("{a: 1}", 1, 2, "expected a key", "key in double quotes"),
        ("[True]", 1, 2, "found 'T', expected a value", "write true"),
        ("[None]", 1, 2, "found 'N'", "write null"),
        ('{"a" 1}', 1, 6, "expected ':'", "correct"),
        ('[1 "b"]', 1, 4, "expected ','", "comma"),
        ('["a\nb"]', 1, 4, "U+000A LINE FEED", "remove"),
        ('["a\\x"]', 1, 4, "a backslash before 'x', expected one of", "backslash"),
        ('["\\\\\\"]', 1, 2, "never ends", "cut"),
        ('["a\\u12"]', 1, 4, "four hexadecimal digits", "backslash"),
        ('["a\\', 1, 2, "never ends", "cut"),
        ('{"a": "b}', 1, 7, "never ends", "cut"),
        ("[1]\0", 1, 4, "U+0000 NULL", "spaces"),
        ("[01]", 1, 3, "'1'", "comma"),
        ("[.5]", 1, 2, "'.'", "correct"),
        ("]", 1, 1, "']'", "correct"),
    ],
)
def test_syntax_error_says_what_was_found_and_where(
    text: str, line: int, column: int, message: str, hint: str
) -> None:
    defect = refusal(text)
    assert defect.kind is DefectKind.UNREADABLE_JSON
    assert place(defect) == (line, column)
    assert message in defect.problem.message
    assert hint in (defect.problem.hint or "")


@pytest.mark.parametrize(
    "literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1E400", "9" * 400 + ".0"]
)
def test_numbers_that_are_none_are_refused(literal: str) -> None:
    defect = refusal(f'{{"NaN": "Infinity 1e999",\n "a": [1e2, {literal}, NaN]}}')
    assert defect.kind is DefectKind.UNREADABLE_JSON
    assert place(defect) == (2, 13)
    assert literal[:100] in defect.problem.message


def test_bad_utf8_is_placed_by_byte_and_line() -> None:
    defect = refusal('{"ä":\n"'.encode() + b'\xff"}')
    assert place(defect) == (2, 2)
    assert "0xFF" in defect.problem.message
    assert "at byte 8" in defect.problem.message


def test_overlong_and_utf16_are_refused() -> None:
    assert "0xC0" in refusal(b'"\xc0\xaf"').problem.message
    assert "UTF-16" in refusal("{}".encode("utf-16")).problem.message
    assert refusal(b'"\xed\xa0\x80"').kind is DefectKind.UNREADABLE_JSON


def test_byte_order_mark_is_a_warning() -> None:
    parsed = parse_json(b"\xef\xbb\xbf[1]", "c.json")
    assert parsed.value == [1]
    assert parsed.readable
    assert parsed.text == "[1]"
    (defect,) = parsed.defects
    assert defect.kind is DefectKind.UNREADABLE_JSON
    assert defect.problem.severity is Severity.WARNING


def test_duplicate_key_is_named_with_both_places() -> None:
    defect = refusal('{"a/b": {"c": 1,\n"d": {}},\n"x": [{"k": {"k": 1,\n"k": 2}}]}')
    assert defect.kind is DefectKind.DUPLICATE_KEY
    assert "'k'" in defect.problem.message
    assert defect.problem.at == (
        Location("c.json", "/x/0/k/k", line=4, column=1),
        Location("c.json", "/x/0/k/k", line=3, column=14),
    )


def test_escapes_do_not_hide_a_duplicate_key() -> None:
    defect = refusal('{"head": 1, "h\\u0065ad": 2, "o": 1, "o": 2}')
    assert defect.problem.at[0].pointer == "/head"
    assert "repeated keys: 'head', 'o'" in defect.problem.message


def test_a_key_in_two_objects_is_no_duplicate() -> None:
    text = '{"a": {"a": 1}, "b": [{"a": 1}, {"a": "a\\": 1"}]}'
    assert parse_json(text.encode(), "c.json").defects == ()


def test_lone_surrogates_are_refused_and_pairs_are_not() -> None:
    defect = refusal('["\\ud83d\\ude00", "\\\\ud800",\n "a\\ud800b"]')
    assert place(defect) == (2, 2)
    assert "U+D800" in defect.problem.message
    assert "\ud800" not in defect.problem.message


@pytest.mark.parametrize(("extra", "accepted"), [(-1, True), (0, True), (1, False)])
def test_depth_limit(extra: int, *, accepted: bool) -> None:
    depth = limits.MAX_DEPTH + extra
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")):
        levels = depth // (2 if len(closing) > 1 else 1)
        levels += not accepted and len(closing) > 1
        text = opening * levels + "1" + closing * levels
        assert parse_json(text.encode(), "c.json").readable is accepted
        # Text beside the nest must not blind the count.
        text = f'["[", "]\\"]", [], {text[1:-1] if opening == "[" else 0}, {{}}]'
        assert parse_json(text.encode(), "c.json").readable is (
            accepted or opening != "["
        )


def test_depth_is_refused_where_it_is_exceeded() -> None:
    defect = refusal('["[",\n' + "[" * 100_000)
    assert defect.kind is DefectKind.OVER_LIMIT
    assert place(defect) == (2, 64)


def test_brackets_in_strings_do_not_hide_depth() -> None:
    nested = '["]", ' * 70 + "1" + "]" * 70
    assert refusal(nested).kind is DefectKind.OVER_LIMIT
    escaped = '["\\"]", ' * 70 + "1" + "]" * 70
    assert refusal(escaped).kind is DefectKind.OVER_LIMIT


def test_shallower_limit_can_be_asked_for() -> None:
    assert not parse_json(b"[[[]]]", "c.json", limit_depth=2).readable
    assert parse_json(b"[[], {}]", "c.json", limit_depth=2).readable


@pytest.mark.parametrize("damage", ["[" * 5000, "]" * 5000, "[}" * 5000, "[]" * 5000])
def test_unbalanced_brackets_end_in_a_defect(damage: str) -> None:
    assert refusal(damage).problem.at[0].line == 1


@pytest.mark.parametrize("form", ["{}", "-{}", "{}.0", "0.{}", '{{"a": {}}}'])
@pytest.mark.parametrize(("extra", "accepted"), [(-1, True), (0, True), (1, False)])
def test_digit_limit(form: str, extra: int, *, accepted: bool) -> None:
    digits = "0" if form == "0.{}" else "9"
    text = form.format(digits * (limits.MAX_DIGITS + extra))
    parsed = parse_json(text.encode(), "c.json")
    if form == "{}.0":
        assert not parsed.readable  # no float is that large
    else:
        assert parsed.readable is accepted
    if not accepted:
        assert parsed.defects[0].kind is DefectKind.OVER_LIMIT


def test_absurd_integer_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_DIGITS", 5)
    defect = refusal('{"123456": "1234567",\n"a": 123456}')
    assert place(defect) == (2, 6)
    assert "6 digits" in defect.problem.message


@pytest.mark.parametrize(("limit", "accepted"), [(6, True), (5, True), (4, False)])
def test_value_limit(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, accepted: bool
) -> None:
    monkeypatch.setattr(limits, "MAX_VALUES", limit)
    parsed = parse_json(b'[{"a": 1, "b": "[,,"}, [], 2]', "c.json")
    assert parsed.readable is (accepted and limit > 5)
    assert parse_json(b'[{"a": 1, "b": "[,,"}, 2]', "c.json").readable is (
        accepted or limit == 4
    )


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_left_as_it_was(*, on: bool) -> None:
    was_on = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        parse_json(b"[1]", "c.json")
        parse_json(b"[1", "c.json")
        assert gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()


def test_an_escaped_quote_over_a_block_border_is_seen() -> None:
    # Strings are cut out in blocks of 1 MiB.
    text = '["' + "a" * (1 << 20) + '\\"]", ' + '["x' * 1 + '"], "' + "b" * 9 + '"]'
    parsed = parse_json(text.encode(), "c.json")
    assert parsed.readable
    for shift in range(4):
        padding = "a" * ((1 << 20) - 2 - shift)
        text = f'["{padding}\\\\", {{"k": 1, "k": 2}}]'
        assert refusal(text).kind is DefectKind.DUPLICATE_KEY
