"""Every damage of a safetensors file has its own kind, numbers and hint."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from qmanifest.findings import Defect, DefectKind, Severity
from qmanifest.reading import limits
from qmanifest.reading.safetensors_header import Header, read_header

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.findings import JsonValue

Members = dict[str, Any]

A: Members = {"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8]}
B: Members = {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}
TWO: Members = {"__metadata__": {"format": "mlx"}, "a": A, "b": B}
DATA = bytes(range(11))


def frame(
    header: Members | bytes, data: bytes = b"", length: int | None = None
) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + data


def read(folder: Path, content: bytes) -> Header:
    path = folder / "m.safetensors"
    path.write_bytes(content)
    header = read_header(path, "sub/m.safetensors")
    assert header.size == len(content)
    for defect in header.defects:
        assert defect.problem.at[0].file == "sub/m.safetensors"
        assert defect.problem.hint
    return header


def only(header: Header) -> Defect:
    (defect,) = header.defects
    return defect


def test_a_sound_file_has_tensors_and_no_defects(tmp_path: Path) -> None:
    content = frame(TWO, DATA)
    header = read(tmp_path, content)
    assert header.readable
    assert header.defects == ()
    assert header.metadata == {"format": "mlx"}
    start = len(content) - len(DATA)
    assert header.header_bytes == start
    a, b = header.tensors
    assert (a.name, a.dtype, a.shape, a.begin, a.end) == (
        "a",
        "F16",
        (2, 2),
        start,
        start + 8,
    )
    assert content[b.begin : b.end] == DATA[8:]
    assert b.file == "sub/m.safetensors"


@pytest.mark.parametrize(
    ("members", "data"),
    [
        ({}, b""),
        ({"__metadata__": None, "a": A}, DATA[:8]),
        ({"b": B, "a": A}, DATA),
        ({"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, DATA[:4]),
        ({"e": {"dtype": "F32", "shape": [0, 9], "data_offsets": [0, 0]}}, b""),
        (
            {"e": {"dtype": "I8", "shape": [0], "data_offsets": [8, 8]}, **TWO},
            DATA,
        ),
        ({"f": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"x"),
        ({"f": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}, b"xyz"),
        ({"f": {"dtype": "F8_E8M0", "shape": [1] * 65, "data_offsets": [0, 1]}}, b"x"),
    ],
)
def test_odd_but_legal_files_are_accepted(
    tmp_path: Path, members: Members, data: bytes
) -> None:
    header = read(tmp_path, frame(members, data))
    assert header.readable
    assert header.defects == ()
    assert len(header.tensors) == len(members.keys() - {"__metadata__"})


def test_padding_with_spaces_is_accepted(tmp_path: Path) -> None:
    text = json.dumps(TWO).encode() + b" " * 7
    assert read(tmp_path, frame(text, DATA)).defects == ()


def zip_archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", b"x" * 100)
    return stream.getvalue()


POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:"
    + b"0" * 64
    + b"\nsize 4976698672\n"
)


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"", "is empty", "download"),
        (b"abc", "3 bytes", "download"),
        (bytes(8), "header length is 0", "download"),
        (bytes(4096), "zeros", "download"),
        (POINTER, "git-lfs pointer to a file of 4,976,698,672 bytes", "git lfs pull"),
        (POINTER.replace(b"\n", b"\r\n"), "4,976,698,672", "git lfs pull"),
        (zip_archive(), "ZIP archive", "convert"),
        (pickle.dumps({"w": [1]}, 2), "pickle", "convert"),
        (pickle.dumps({"w": [1]}, 5), "pickle", "convert"),
        (b"<!DOCTYPE html><html>401</html>", "HTML", "logged in"),
        (b"\n<html><body>x", "HTML", "logged in"),
        (b'{"error":"Repository not found"}', "JSON text", "download"),
        (b"Entry not found", "plain text that begins with 'Entry not found'", "downl"),
        (b"GGUF\x03\0\0\0" + bytes(16), "GGUF", "convert"),
        (b"\x93NUMPY\x01\0", "numpy", "convert"),
        (b"\x89HDF\r\n\x1a\n", "HDF5", "convert"),
        (gzip.compress(b"x" * 99, mtime=0), "gzip", "unpack"),
        (b"x" * 257 + b"ustar", "tar", "unpack"),
        (frame(b"{}", length=1 << 63), "9,223,372,036,854,775,808", "download"),
        (frame(b"{}", length=(1 << 64) - 1), "18,446,744,073", "download"),
        (frame(b"\xfe\xff", length=3), "has 3 bytes", "download"),
    ],
)
def test_what_is_not_safetensors_is_named(
    tmp_path: Path, content: bytes, message: str, hint: str
) -> None:
    header = read(tmp_path, content)
    assert not header.readable
    defect = only(header)
    assert defect.kind is DefectKind.NOT_SAFETENSORS
    assert message in defect.problem.message
    assert hint in (defect.problem.hint or "")


def test_a_large_zip_is_no_header_over_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with path.open("wb") as stream:
        stream.write(b"GGUF\x03\0\0\0{")
        stream.truncate(20 << 30)
    defect = only(read_header(path, "m"))
    assert defect.kind is DefectKind.NOT_SAFETENSORS
    assert "GGUF" in defect.problem.message


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling", "device", "absent"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.safetensors"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind != "absent":
        path.symlink_to("/dev/zero" if kind == "device" else "nowhere")
    header = read_header(path, "m.safetensors")
    assert only(header).kind is DefectKind.NOT_SAFETENSORS
    assert (header.readable, header.size, header.tensors) == (False, 0, ())


@pytest.mark.parametrize(("extra", "accepted"), [(-1, True), (0, True), (1, False)])
def test_header_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int, *, accepted: bool
) -> None:
    text = json.dumps(TWO).encode()
    monkeypatch.setattr(limits, "MAX_HEADER", len(text) - extra)
    header = read(tmp_path, frame(text, DATA))
    assert header.readable is accepted
    if not accepted:
        assert only(header).kind is DefectKind.OVER_LIMIT
        assert only(header).problem.actual == len(text)


def test_header_limit_is_that_of_the_safetensors_library(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    for size, kind in (
        (100_000_000, DefectKind.BAD_HEADER),
        (100_000_001, DefectKind.OVER_LIMIT),
    ):
        with path.open("wb") as stream:
            stream.write(size.to_bytes(8, "little") + b"[")
            stream.truncate(size + 8)
        assert only(read_header(path, "m")).kind is kind


@pytest.mark.parametrize("kept", [8, 9, 20, 60])
def test_a_cut_header_has_the_bytes_expected_and_found(
    tmp_path: Path, kept: int
) -> None:
    content = frame(TWO, DATA)
    header = read(tmp_path, content[:kept])
    defect = only(header)
    assert defect.kind is DefectKind.TRUNCATED
    assert not header.readable
    assert defect.problem.expected == len(content) - len(DATA)
    assert defect.problem.actual == kept


def test_cut_data_lists_the_tensors_lost(tmp_path: Path) -> None:
    content = frame(TWO, DATA)
    header = read(tmp_path, content[:-1])
    defect = only(header)
    assert defect.kind is DefectKind.TRUNCATED
    assert header.readable
    assert len(header.tensors) == 2
    assert (defect.problem.expected, defect.problem.actual) == (
        len(content),
        len(content) - 1,
    )
    assert "1 of 2 tensors lost" in defect.problem.message
    assert "'b'" in defect.problem.message
    assert [place.tensor for place in defect.problem.at] == [None, "b"]
    lost = only(read(tmp_path, content[:-4])).problem
    assert [place.tensor for place in lost.at] == [None, "a", "b"]


def test_cut_data_names_a_few_tensors_and_lists_all(tmp_path: Path) -> None:
    members = {
        f"t{n}": {"dtype": "U8", "shape": [1], "data_offsets": [n, n + 1]}
        for n in range(1000)
    }
    problem = only(read(tmp_path, frame(members))).problem
    assert "'t4' and 995 more" in problem.message
    assert len(problem.at) == 1001


@pytest.mark.parametrize(
    ("tail", "message"),
    [(b"x", "1 byte "), (zip_archive(), "ZIP archive"), (bytes(64), "zeros")],
)
def test_trailing_bytes_are_counted_and_recognised(
    tmp_path: Path, tail: bytes, message: str
) -> None:
    content = frame(TWO, DATA)
    header = read(tmp_path, content + tail)
    defect = only(header)
    assert defect.kind is DefectKind.TRAILING_BYTES
    assert header.readable
    assert message in defect.problem.message
    assert defect.problem.at[0].byte_range == (len(content), len(content + tail))


def test_data_without_tensors_is_trailing(tmp_path: Path) -> None:
    assert only(read(tmp_path, frame({}, b"x"))).kind is DefectKind.TRAILING_BYTES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "begins with '['"),
        (b" {}", "begins with U+0020 SPACE"),
        (b"\n{}", "begins with U+000A"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
        (b"\xfe\xff{}", "begins with byte 0xFE"),
        (b'{"a": }', "found '}', expected a value, at byte 14"),
        (b"{}\0\0\0\0", "U+0000 NULL"),
        (b"{}{}", "expected the end"),
        (b'{"a":1,}', "comma"),
        (b'{"he\xc0\xafad":1}', "0xC0 is not UTF-8, at byte 12"),
        (b'{"\xc3\xa4": NaN}', "'NaN' is not a number that JSON can say, at byte 15"),
    ],
)
def test_a_bad_header_is_placed_by_its_byte(
    tmp_path: Path, text: bytes, message: str
) -> None:
    header = read(tmp_path, frame(text))
    defect = only(header)
    assert defect.kind is DefectKind.BAD_HEADER
    assert not header.readable
    assert message in defect.problem.message


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"format": "pt", "n": 5}, "/__metadata__/n"),
        ({"a/b": None}, "/__metadata__/a~1b"),
        ({"x": {"y": "z"}}, "/__metadata__/x"),
        ([], "/__metadata__"),
        ("x", "/__metadata__"),
        (False, "/__metadata__"),
    ],
)
def test_metadata_must_be_strings(
    tmp_path: Path, value: JsonValue, pointer: str
) -> None:
    header = read(tmp_path, frame({"__metadata__": value, "a": A}, DATA[:8]))
    assert only(header).kind is DefectKind.BAD_HEADER
    assert only(header).problem.at[0].pointer == pointer
    assert pointer[1:] in only(header).problem.message
    assert header.readable


@pytest.mark.parametrize(
    ("text", "pointer", "tensor"),
    [
        ('{"a": {}, "a": {}}', "/a", "a"),
        ('{"head": {}, "h\\u0065ad": {}}', "/head", "head"),
        ('{"__metadata__": {}, "__metadata__": null}', "/__metadata__", None),
        ('{"__metadata__": {"k": "1", "k": "2"}}', "/__metadata__/k", None),
        ('{"a/b": {"dtype": "U8", "dtype": "I8"}}', "/a~1b/dtype", "a/b"),
    ],
)
def test_a_duplicate_key_is_named(
    tmp_path: Path, text: str, pointer: str, tensor: str | None
) -> None:
    header = read(tmp_path, frame(text.encode()))
    defect = only(header)
    assert defect.kind is DefectKind.DUPLICATE_KEY
    assert not header.readable
    assert defect.problem.at[0].pointer == pointer
    assert defect.problem.at[0].tensor == tensor


@pytest.mark.parametrize("text", ['{"a\\ud800": {}}', '{"a": {"shape": [-0]}}'])
def test_what_only_some_readers_take_in_an_entry_is_refused(
    tmp_path: Path, text: str
) -> None:
    header = read(tmp_path, frame(text.encode()))
    assert only(header).kind is DefectKind.BAD_ENTRY
    assert "at byte" in only(header).problem.message
    assert not header.readable


def test_deep_nesting_is_over_the_limit(tmp_path: Path) -> None:
    text = b'{"__metadata__":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert only(read(tmp_path, frame(text))).kind is DefectKind.OVER_LIMIT


@pytest.mark.parametrize(("count", "accepted"), [(2, True), (3, True), (4, False)])
def test_tensor_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, *, accepted: bool
) -> None:
    monkeypatch.setattr(limits, "MAX_TENSORS", 3)
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    members: Members = {"__metadata__": {}}
    members |= {str(n): empty for n in range(count)}
    header = read(tmp_path, frame(members))
    assert header.readable is accepted
    assert [d.kind for d in header.defects] == [DefectKind.OVER_LIMIT] * (not accepted)


def test_a_file_cut_between_two_looks_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = frame(TWO, DATA)
    real = os.pread

    def shrunk(descriptor: int, length: int, offset: int) -> bytes:
        return (
            real(descriptor, min(length, 30 - offset), offset) if offset < 30 else b""
        )

    monkeypatch.setattr(os, "pread", shrunk)
    assert only(read(tmp_path, content)).kind is DefectKind.TRUNCATED


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_tail_that_cannot_be_read_leaves_the_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separators: tuple[str, str]
) -> None:
    content = frame(json.dumps(TWO, separators=separators).encode(), DATA)
    real = os.pread

    def broken(descriptor: int, length: int, offset: int) -> bytes:
        if offset >= len(content):
            raise OSError("bad sector")
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", broken)
    header = read(tmp_path, content + b"x")
    assert "bad sector" in only(header).problem.message
    assert not header.readable
    assert [tensor.name for tensor in header.tensors] == ["a", "b"]
    assert header.header_bytes == len(content) - len(DATA)


def test_a_warning_leaves_the_file_readable(tmp_path: Path) -> None:
    members = {"a\u200b": A}
    header = read(tmp_path, frame(members, DATA[:8]))
    assert only(header).problem.severity is Severity.WARNING
    assert header.readable
