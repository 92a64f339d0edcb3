"""The fast reader of large objects says what the strict one says, or nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.reading import json_plain, json_text, limits
from qmanifest.reading.json_decode import decode
from qmanifest.reading.json_plain import decode_plain
from qmanifest.reading.json_text import parse_json

ENTRY = {"bits": 4, "group_size": 64, "shape": [1, 64]}
CONFIG = {
    "bits": 4,
    "kept_16bit": ["a", "b"],
    "tensors": {"x": ENTRY, "y": ENTRY, "é": {}, "z": {**ENTRY, "bits": 8}},
    "nothing": {},
}
INDEX = {"metadata": {"total_size": 12}, "weight_map": {"x": "1.s", "y": "1.s"}}
TEXT = json.dumps(CONFIG, ensure_ascii=False)


def same(text: str, depth: int = limits.MAX_DEPTH) -> bool:
    """Read a text with and without the fast reader; tell whether it was used."""
    data = text.encode()
    fast = parse_json(data, "f", depth)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_text, "decode_plain", lambda *_: None)
        strict = parse_json(data, "f", depth)
    # `repr` tells `1` from `True` and `1.0`, and shows the order of the members.
    assert repr(fast) == repr(strict)
    return decode_plain(data, depth) is not None


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        json.dumps(CONFIG, indent=2, ensure_ascii=False),
        json.dumps(CONFIG, indent="\t", ensure_ascii=False).replace("\n", "\r\n"),
        json.dumps(INDEX),
        json.dumps(INDEX, indent=1),
        "{}",
        ' {"a" : 1.5e3 } ',
        '{"a": -0, "b": [true, null, {"c": 1.0}]}',
        '{"a\\"b": {"\\\\": "\\"", "c\\n": "\\\\"}}',
        '{"re:\\\\d": {"a": {"b\\\\": "\\\\\\""}}}',
    ],
)
def test_sound_objects(text: str) -> None:
    assert same(text)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        "",
        "\ufeff{}",
        TEXT.replace('"y"', '"x"'),
        TEXT.replace('"kept_16bit"', '"bits"'),
        TEXT.replace('"group_size"', '"bits"', 1),
        json.dumps(INDEX).replace('"y"', '"x"'),
        json.dumps(INDEX).replace('"metadata"', '"weight_map"'),
        TEXT.replace("64", "064", 1),
        TEXT.replace("64", "NaN", 1),
        TEXT.replace("64", "1e999", 1),
        TEXT.replace("64", "1" * (limits.MAX_DIGITS + 1), 1),
        TEXT.replace("64", "+64", 1),
        TEXT.replace('"x"', '"\\ud800"'),
        TEXT.replace('"x"', '"\\u0061"'),
        TEXT.replace('"x"', '"\x01"'),
        TEXT.replace('"x"', '"\\x"'),
        TEXT.replace('"x"', "'x'"),
        TEXT.replace("}}", "},}"),
        TEXT.replace("64]", "64,]", 1),
        TEXT[:-1],
        f"{TEXT}x",
        f'{{"a": {"[" * 10_000}',
        f'{{"a": {"[" * limits.MAX_DEPTH}{"]" * limits.MAX_DEPTH}}}',
    ],
)
def test_whatever_is_odd_is_left_to_the_strict_reader(text: str) -> None:
    assert not same(text)


@pytest.mark.parametrize("depth", range(5))
def test_depth(depth: int) -> None:
    for text in ("{}", '{"a": {}}', '{"a": {"b": "c"}}', '{"a": {"b": [[]]}}', TEXT):
        same(text, depth)


def test_not_utf_8() -> None:
    for place in ('"x"', '"a"', '"tensors"'):
        data = TEXT.replace(place, '"?"').encode().replace(b"?", b"\xff")
        assert decode_plain(data, limits.MAX_DEPTH) is None


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_VALUES", len(TEXT) // 2 - 1)
    assert decode_plain(TEXT.encode(), limits.MAX_DEPTH) is None


def test_equal_entries_are_one_object() -> None:
    value = decode_plain(TEXT.encode(), limits.MAX_DEPTH)
    assert value is not None
    tensors = value["tensors"]
    assert isinstance(tensors, dict)
    assert tensors["x"] is tensors["y"]
    assert tensors["x"] is not tensors["z"]


def test_many_different_values_are_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    different = json.dumps({"a": {str(number): number for number in range(8)}})
    alike = json.dumps({"a": {str(number): number // 4 for number in range(8)}})
    assert same(different)
    monkeypatch.setattr(json_plain, "_FEW", 4)
    assert not same(different)
    assert same(alike)


@given(data=st.data(), base=st.sampled_from([TEXT, json.dumps(INDEX, indent=1)]))
def test_no_change_of_some_characters_fools_it(data: st.DataObject, base: str) -> None:
    at = data.draw(st.integers(0, len(base)))
    length = data.draw(st.integers(0, 12))
    alphabet = '{}[]",:.-+0123468eEabdxytrunl \\/\n\t\x7fé'
    new = data.draw(st.text(alphabet=alphabet, max_size=6))
    same(base[:at] + new + base[at + length :])


@given(data=st.data())
def test_no_copy_of_a_part_fools_it(data: st.DataObject) -> None:
    text = json.dumps(CONFIG, separators=(",", ":"), ensure_ascii=False)
    places = st.integers(0, len(text))
    start, end, at = (data.draw(places) for _ in range(3))
    same(text[:at] + text[start:end] + text[at:])


def test_the_strict_reader_does_read_what_is_left_to_it() -> None:
    assert decode(b'{"\\u0061": 1}').value == {"a": 1}
