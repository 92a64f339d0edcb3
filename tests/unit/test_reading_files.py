"""Only regular files are opened, and never more than the limit is read."""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, NoReturn

import pytest

from qmanifest.findings import DefectKind
from qmanifest.reading.files import (
    FileProblem,
    is_inside,
    open_regular,
    read_at,
    read_whole,
)

if TYPE_CHECKING:
    from pathlib import Path


def refusal(path: Path, limit: int = 10) -> FileProblem:
    with pytest.raises(FileProblem) as caught:
        read_whole(path, limit)
    return caught.value


@pytest.mark.parametrize("size", [0, 9, 10])
def test_reads_up_to_the_limit(tmp_path: Path, size: int) -> None:
    (tmp_path / "f").write_bytes(b"x" * size)
    assert read_whole(tmp_path / "f", 10) == b"x" * size


def test_refuses_one_byte_more(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 11)
    problem = refusal(tmp_path / "f")
    assert problem.kind is DefectKind.OVER_LIMIT
    assert (problem.expected, problem.actual) == (10, 11)


def test_sparse_giant_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as stream:
        stream.truncate(1 << 40)
    assert refusal(tmp_path / "f").kind is DefectKind.OVER_LIMIT


def test_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    problem = refusal(tmp_path / "f")
    assert problem.kind is DefectKind.UNREADABLE_JSON
    assert "FIFO" in problem.message


def test_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").symlink_to("/dev/zero")
    assert "character device" in refusal(tmp_path / "f").message


def test_directory_and_socket_are_refused(tmp_path: Path) -> None:
    assert "directory" in refusal(tmp_path).message
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "s"))
        assert "socket" in refusal(tmp_path / "s").message


def test_dangling_link_says_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "f").symlink_to("nowhere")
    assert "link to 'nowhere'" in refusal(tmp_path / "f").message


def test_link_in_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").symlink_to("f")
    assert "cannot be opened" in refusal(tmp_path / "f").message


@pytest.mark.parametrize("name", ["absent", "n\0ul", "n" * 300, "l\ud800one"])
def test_impossible_names_are_refused_without_a_traceback(
    tmp_path: Path, name: str
) -> None:
    assert refusal(tmp_path / name).hint


def test_a_file_that_becomes_a_fifo_after_the_first_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regular, fifo = tmp_path / "regular", tmp_path / "fifo"
    regular.write_bytes(b"")
    os.mkfifo(fifo)
    real = os.open
    monkeypatch.setattr(os, "open", lambda _, flags: real(fifo, flags))
    assert "FIFO" in refusal(regular).message


def test_descriptor_is_closed_and_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    with open_regular(tmp_path / "f") as (descriptor, size):
        assert size == 3
        assert not os.get_inheritable(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_read_at_stops_where_the_file_ends(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abcdef")
    with open_regular(tmp_path / "f") as (descriptor, _):
        assert read_at(descriptor, 2, 3) == b"cde"
        assert read_at(descriptor, 4, 9) == b"ef"


def test_failing_disk_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "f").write_bytes(b"abc")
    monkeypatch.setattr(os, "pread", broken)
    assert "Input/output error" in refusal(tmp_path / "f").message


def test_files_below_the_root_are_inside(tmp_path: Path) -> None:
    assert is_inside(tmp_path, tmp_path / "a" / "b")
    assert is_inside(tmp_path, tmp_path / "a" / ".." / "b")
    assert not is_inside(tmp_path / "a", tmp_path / "b")
    assert not is_inside(tmp_path / "a", tmp_path / "a" / ".." / "b")
    assert not is_inside(tmp_path / "a", tmp_path / "ab")


@pytest.mark.parametrize("name", ["n\0ul", "l\ud800one"])
def test_impossible_names_are_not_inside(tmp_path: Path, name: str) -> None:
    assert not is_inside(tmp_path, tmp_path / name)


def test_links_are_resolved_on_both_sides(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    (home / "out").symlink_to(other)
    (tmp_path / "alias").symlink_to(home)
    assert not is_inside(home, home / "out" / "f")
    assert is_inside(tmp_path / "alias", home / "f")
    assert is_inside(home, tmp_path / "alias" / "f")


@pytest.mark.parametrize("folder", ["", "emb"])
def test_hub_cache_blobs_are_inside_their_snapshot(tmp_path: Path, folder: str) -> None:
    repository = tmp_path / "models--org--name"
    snapshot = repository / "snapshots" / "0123abc"
    root = snapshot / folder
    root.mkdir(parents=True)
    blobs = repository / "blobs"
    blobs.mkdir()
    (blobs / "abc").write_bytes(b"")
    (root / "f").symlink_to(os.path.relpath(blobs / "abc", root))
    assert is_inside(root, root / "f")
    (root / "ref").symlink_to(repository / "refs")
    assert not is_inside(root, root / "ref")
    (root / "other").symlink_to(tmp_path / "models--org--other" / "blobs" / "abc")
    assert not is_inside(root, root / "other")


def test_blobs_beside_a_common_folder_are_outside(tmp_path: Path) -> None:
    root = tmp_path / "snapshot" / "x"
    root.mkdir(parents=True)
    (root / "f").symlink_to(tmp_path / "blobs" / "abc")
    assert not is_inside(root, root / "f")
