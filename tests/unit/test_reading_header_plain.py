"""The fast reader of plain headers says what the strict one says, or nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmanifest.reading import limits, safetensors_header
from qmanifest.reading.header_plain import read_plain
from qmanifest.reading.safetensors_header import read_header

if TYPE_CHECKING:
    from pathlib import Path

FILE = "m.safetensors"
FORMAT = {"format": "pt"}


def entry(shape: list[int], begin: int, **changes: object) -> dict[str, object]:
    size = 2
    for dimension in shape:
        size *= dimension
    offsets = [begin, begin + size]
    return {"dtype": "F16", "shape": shape, "data_offsets": offsets, **changes}


def compact(header: dict[str, Any]) -> str:
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False)


TWO = {"a": entry([4, 2], 0), "b": entry([3], 16)}
PLAIN = compact(TWO)


def both(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Read a header with and without the fast reader; tell whether it was used."""
    data = text.encode()
    path = tmp_path / FILE
    path.write_bytes(len(data).to_bytes(8, "little") + data + b"\0" * 22)
    fast = read_header(path, FILE)
    with monkeypatch.context() as patched:
        patched.setattr(safetensors_header, "read_plain", lambda *_: None)
        assert read_header(path, FILE) == fast
    return read_plain(data, FILE, len(data) + 8) is not None


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"{PLAIN}   ",
        compact({"__metadata__": FORMAT, **TWO}),
        compact({"__metadata__": None, **TWO}),
        compact({name: dict(sorted(TWO[name].items())) for name in TWO}),
        compact({"é": TWO["a"], "b": TWO["b"]}),
        compact({"b": TWO["b"], "a": TWO["a"]}),
        compact({"a": entry([4, 2], 0), "b": entry([3], 18)}),
        compact({"a": entry([4, 2], 0), "b": entry([3], 8)}),
        compact({**TWO, "__metadata__": FORMAT}),
        compact({"__metadata__": {"a": "}"}, **TWO}),
        f"{PLAIN}\n",
        PLAIN.replace('"b":', '\n"b" : '),
        PLAIN.replace('"b"', "\"b,'dtype':[1]}\""),
        "{}",
    ],
)
def test_plain_headers(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert both(tmp_path, text, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace('"b"', '"a"'),
        PLAIN.replace('"dtype":"F16"', '"dtype":"F16","dtype":"F16"'),
        PLAIN.replace('"shape":[3]', '"shape":[3],"shape":[3]'),
        PLAIN.replace("[3]", "[3.0]"),
        PLAIN.replace("[3]", "[3e0]"),
        PLAIN.replace("[3]", "[03]"),
        PLAIN.replace("[4,2]", "[-4,-2]"),
        PLAIN.replace("[0,", "[-0,"),
        PLAIN.replace("[3]", "[true]"),
        PLAIN.replace("[3]", "null"),
        PLAIN.replace("[3]", "[4]"),
        PLAIN.replace("[3]", f"[{2**62},4]"),
        PLAIN.replace("[16,22]", "[16,16]").replace("[3]", "[0]"),
        PLAIN.replace("[16,22]", f"[16,{10**700}]"),
        PLAIN.replace("F16", "F17", 1),
        PLAIN.replace(",", ", "),
        PLAIN.replace('"a"', '"\\u0061"'),
        PLAIN.replace('"a"', '"\x01"'),
        PLAIN.replace('"a"', '"\x7f"'),
        PLAIN.replace('"a"', '"é\x7f"'),
        PLAIN.replace('"a"', '"a\\\\"'),
        PLAIN.replace('"a"', '"\u202e"'),
        PLAIN.replace('"a"', '""'),
        PLAIN.replace('"a"', f'"{"a" * (limits.MAX_NAME + 1)}"'),
        PLAIN.replace("[3]", f"[3{',1' * limits.MAX_RANK}]"),
        PLAIN.replace('"dtype"', '"x":1,"dtype"', 1),
        PLAIN.replace('"F16","shape"', '"F16","x":1,"shape"', 1),
        PLAIN.replace("[16,22]", '[16,22],"x":1'),
        PLAIN.replace("[16,22]", "[16,22,22]"),
        PLAIN.replace("[16,22]", "[16]"),
        PLAIN.replace("[16,22]", "[]"),
        PLAIN.replace("[16,22]", "[16,22.0]"),
        PLAIN.replace("[16,22]", "[16,022]"),
        PLAIN.replace("[16,22]", '"16,22"'),
        PLAIN.replace('{"dtype":"F16","shape":[3],"data_offsets":[16,22]}', "[]"),
        compact({"a": TWO["a"], "b": dict(sorted(TWO["b"].items()))}),
        compact({"a": dict(sorted(TWO["a"].items())), "b": TWO["b"]}),
        PLAIN.replace('[0,16]},"b":', '[0,16],"data_offsets":'),
        compact({"__metadata__": {"a": 1}, **TWO}),
        compact({"__metadata__": FORMAT}).replace("pt", 'pt","format":"pt'),
        '{"__metadata__":{},"__metadata__":{}}',
        '{"__metadata__":null,}',
        '{"__metadata__":null',
        compact({"__metadata__": None, **TWO}).replace("null,", "null"),
        f"{PLAIN}x",
        "{",
        "{}{}",
    ],
)
def test_whatever_is_odd_is_left_to_the_strict_reader(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not both(tmp_path, text, monkeypatch)


@given(data=st.data())
def test_no_change_of_a_character_fools_it(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = compact({"__metadata__": FORMAT, **TWO})
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 3))
    new = data.draw(st.text(alphabet='{}[]",:.-0123468eabdF \\n\x7fé', max_size=3))
    changed = "{" + (text[:at] + new + text[at + length :])[1:]
    with pytest.MonkeyPatch.context() as monkeypatch:
        both(tmp_path_factory.mktemp("header"), changed, monkeypatch)


def test_not_utf_8() -> None:
    assert (
        read_plain(PLAIN.replace('"a"', '"X"').encode().replace(b"X", b"\xff"), FILE, 0)
        is None
    )


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = PLAIN.encode()
    assert read_plain(data, FILE, 8) is not None
    with monkeypatch.context() as patched:
        patched.setattr(limits, "MAX_TENSORS", 1)
        assert read_plain(data, FILE, 8) is None
    monkeypatch.setattr(limits, "MAX_VALUES", len(data) // 2 - 1)
    assert read_plain(data, FILE, 8) is None
