"""Whatever the reader accepts, the safetensors library accepts and reads alike.

Headers are drawn valid and then damaged: a field replaced, a byte changed, data cut
or added. The reader may refuse more than the library, and never less.
"""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from qmanifest.dtypes import DTYPES, nbytes
from qmanifest.findings import Severity
from qmanifest.reading.safetensors_header import Header, read_header

if TYPE_CHECKING:
    from pathlib import Path

Members = dict[str, Any]
Stored = dict[str, tuple[str, tuple[int, ...]]]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for all examples, each of which writes it anew."""
    return tmp_path_factory.mktemp("headers") / "m.safetensors"


def ours(path: Path, content: bytes) -> Header:
    path.write_bytes(content)
    return read_header(path, "m.safetensors")


def is_accepted(header: Header) -> bool:
    return all(d.problem.severity is Severity.WARNING for d in header.defects)


def library(path: Path) -> tuple[Stored, dict[str, str] | None] | None:
    """Read the same file with the library; None where it refuses."""
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            stored = {
                name: (found.get_dtype(), tuple(found.get_shape()))
                for name, found in slices.items()
            }
            return stored, file.metadata()
    except SafetensorError:
        return None


def pack(members: Members | bytes, data: bytes) -> bytes:
    text = members if isinstance(members, bytes) else json.dumps(members).encode()
    return len(text).to_bytes(8, "little") + text + data


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
    lambda name: name != "__metadata__"
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Members, bytes]:
    """Draw members and data that belong together, members in any order."""
    entries: list[tuple[str, Members]] = []
    position = 0
    for name in draw(st.lists(NAMES, max_size=5, unique=True)):
        dtype = draw(st.sampled_from(sorted(DTYPES)))
        shape = draw(st.lists(st.integers(0, 5), max_size=4))
        if prod(shape) * DTYPES[dtype].bits % 8:
            shape.append(4)
        end = position + nbytes(dtype, tuple(shape))
        offsets = [position, end]
        entries.append(
            (name, {"dtype": dtype, "shape": shape, "data_offsets": offsets})
        )
        position = end
    members: Members = dict(draw(st.permutations(entries)))
    metadata = draw(
        st.none() | st.just("absent") | st.dictionaries(NAMES, st.text(max_size=4))
    )
    if metadata != "absent":
        members["__metadata__"] = metadata
    return members, bytes(position)


ODD_INTEGERS = st.sampled_from(
    [-1, 0, 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64]
)
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    ODD_INTEGERS,
    st.sampled_from([4.0, -0.0, "4", "", [], {}, [[1]], {"a": 1}]),
    st.lists(st.integers(-1, 9) | ODD_INTEGERS, max_size=4),
    st.sampled_from(["F16", "f16", "F12", "BF16", "F4", "I64"]),
)


@given(table=tables())
def test_a_valid_file_is_accepted_and_read_like_the_library(
    path: Path,
    table: tuple[Members, bytes],
) -> None:
    members, data = table
    header = ours(path, pack(members, data))
    assert is_accepted(header)
    assert header.readable
    found = library(path)
    assert found is not None
    stored, metadata = found
    assert {t.name: (t.dtype, t.shape) for t in header.tensors} == stored
    assert dict(header.metadata or {}) == (metadata or {})
    for tensor in header.tensors:
        begin, end = members[tensor.name]["data_offsets"]
        assert tensor.begin - header.header_bytes == begin
        assert tensor.end - header.header_bytes == end


def check_no_laxer(path: Path, content: bytes) -> None:
    header = ours(path, content)
    if not is_accepted(header):
        return
    found = library(path)
    assert found is not None, "accepted what the library refuses"
    stored, _ = found
    assert header.readable
    assert {t.name: (t.dtype, t.shape) for t in header.tensors} == stored


@given(table=tables(), data=st.data())
def test_a_replaced_field_is_judged_no_laxer_than_by_the_library(
    path: Path, table: tuple[Members, bytes], data: st.DataObject
) -> None:
    members, content = table
    where = data.draw(st.sampled_from([*members, "new"]))
    field = data.draw(
        st.sampled_from(["dtype", "shape", "data_offsets", "other", None])
    )
    value = data.draw(ODD_VALUES)
    if field is None or not isinstance(members.get(where), dict):
        members[where] = value
    elif data.draw(st.booleans()):
        members[where][field] = value
    else:
        members[where].pop(field, None)
    check_no_laxer(path, pack(members, content))


@given(table=tables(), data=st.data())
def test_a_damaged_file_is_judged_no_laxer_than_by_the_library(
    path: Path, table: tuple[Members, bytes], data: st.DataObject
) -> None:
    content = pack(*table)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(start + 3, len(content))))
    inserted = data.draw(
        st.binary(max_size=3)
        | st.sampled_from([b"-", b"0", b",", b'"', b"\\", b"[", b"{}", b" ", b"1e9"])
    )
    check_no_laxer(path, content[:start] + inserted + content[end:])


@given(content=st.binary(max_size=64))
def test_any_bytes_end_in_a_header_without_a_traceback(
    path: Path, content: bytes
) -> None:
    check_no_laxer(path, content)


@pytest.mark.parametrize(
    "shape", ["[-0]", "[1.0]", "[0, 1E0]", "[18446744073709551616, 0]", "[ 0 , 3 ]"]
)
def test_numbers_are_read_no_laxer_than_by_the_library(path: Path, shape: str) -> None:
    text = f'{{"x": {{"dtype": "U8", "shape": {shape}, "data_offsets": [0, 0]}}}}'
    header = ours(path, pack(text.encode(), b""))
    assert is_accepted(header) is (library(path) is not None) is (shape == "[ 0 , 3 ]")


@given(table=tables().filter(lambda table: len(table[0]) > 1), data=st.data())
def test_a_repeated_key_is_always_found(
    path: Path, table: tuple[Members, bytes], data: st.DataObject
) -> None:
    members, content = table
    name = data.draw(st.sampled_from(sorted(members)))
    escaped = "".join(f"\\u{unit:04x}" for unit in _utf16(name))
    again = f'"{escaped}": {json.dumps(members[name])}'
    text = f"{json.dumps(members)[:-1]}, {again}}}"
    header = ours(path, pack(text.encode(), content))
    assert [defect.kind.value for defect in header.defects] == ["duplicate-key"]
    assert not header.readable


def _utf16(text: str) -> list[int]:
    encoded = text.encode("utf-16-be")
    return [int.from_bytes(encoded[n : n + 2]) for n in range(0, len(encoded), 2)]
