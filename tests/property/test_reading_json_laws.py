"""Laws of the strict JSON reader, over drawn documents and drawn damage."""

from __future__ import annotations

import json
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from qmanifest.findings import DefectKind, json_pointer
from qmanifest.reading.json_text import locate, locate_all, parse_json

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['"', "\\", "[{", "]}", ",", ":", '\\"', "a/b~c"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=20,
)


def walk(value: Json, *path: str | int) -> dict[str, Json]:
    """Every value of a document by its pointer."""
    found = {json_pointer(*path): value}
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= walk(inner, *path, key)
    if isinstance(value, list):
        for position, inner in enumerate(value):
            found |= walk(inner, *path, position)
    return found


def deepest(value: Json) -> int:
    if isinstance(value, dict):
        return 1 + max(map(deepest, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(deepest, value), default=0)
    return 0


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 0, 2]))
def test_whatever_json_writes_is_read_back(
    document: Json,
    ascii_only: bool,  # noqa: FBT001 - drawn
    indent: int | None,
) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    parsed = parse_json(text.encode(), "f")
    assert parsed.defects == ()
    assert parsed.value == document


@given(DOCUMENTS, st.integers(0, 8))
def test_the_depth_limit_is_exact(document: Json, limit: int) -> None:
    parsed = parse_json(json.dumps(document).encode(), "f", limit_depth=limit)
    assert parsed.readable is (deepest(document) <= limit)


@given(DOCUMENTS, st.sampled_from([None, 0, 2]))
def test_every_pointer_leads_to_its_value(document: Json, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    values = walk(document)
    found = locate_all(text, values)
    assert found.keys() == values.keys()
    lines = text.split("\n")
    for pointer, (line, column) in found.items():
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        value, end = json.JSONDecoder().raw_decode(rest)
        parent = values[pointer.rpartition("/")[0]]
        if pointer and isinstance(parent, dict):
            key = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            assert value == key
            rest = rest[end:].lstrip(" \n:")
            value, _ = json.JSONDecoder().raw_decode(rest)
        assert json.dumps(value) == json.dumps(values[pointer])
        assert locate(text, pointer) == (line, column)


@given(DOCUMENTS, st.data())
def test_damage_never_raises_and_never_widens_what_json_takes(
    document: Json, data: st.DataObject
) -> None:
    text = json.dumps(document, ensure_ascii=False).encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 3, len(text))))
    inserted = data.draw(
        st.binary(max_size=3)
        | st.sampled_from([b"[", b"]", b'"', b"\\", b",", b"NaN", b"\\ud800", b"\0"])
    )
    damaged = text[:start] + inserted + text[end:]
    parsed = parse_json(damaged, "f")
    if not parsed.readable:
        (defect,) = parsed.defects
        place = defect.problem.at[0]
        assert place.line is not None
        assert place.column is not None
        assert 1 <= place.line <= parsed.text.count("\n") + 1
        assert 1 <= place.column <= len(parsed.text) + 1
        assert defect.problem.hint
        return
    assert parsed.value == json.loads(damaged.decode("utf-8-sig"))


@given(st.dictionaries(TEXTS, SCALARS, min_size=1, max_size=5), st.data())
def test_a_repeated_key_is_found_at_any_depth(
    members: dict[str, Json], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(members)))
    inner = f"{json.dumps(members)[:-1]}, {json.dumps(key)}: 0}}"
    depth = data.draw(st.integers(0, 3))
    text = '[1, {"k": ' * depth + inner + "}, {}]" * depth
    parsed = parse_json(text.encode(), "f")
    assert parsed.value is None
    (defect,) = parsed.defects
    assert defect.kind is DefectKind.DUPLICATE_KEY
    path: list[str | int] = [1, "k"] * depth
    assert defect.problem.at[0].pointer == json_pointer(*path, key)
    assert defect.problem.at[0].column == text.rindex(json.dumps(key) + ": 0}") + 1
