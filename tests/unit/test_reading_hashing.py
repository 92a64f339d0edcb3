"""Digests of shards: as `hashlib` has them, in order, and nothing hashed in part."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from qmanifest.reading import hashing
from qmanifest.reading.hashing import (
    Digest,
    HashError,
    checksum_lines,
    hash_shards,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONTENT = {
    "b-00001-of-00002.safetensors": b"first",
    "b-00002-of-00002.safetensors": b"second, and longer",
    "emb/a.safetensors": b"",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "model"
    (root / "emb").mkdir(parents=True)
    (root / ".cache").mkdir()
    for name, data in CONTENT.items():
        (root / name).write_bytes(data)
    for name in ("config.json", ".b.safetensors.1.tmp", ".cache/old.safetensors"):
        (root / name).write_bytes(b"not a shard")
    return root


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_digests_are_those_of_hashlib(
    folder: Path, threads: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "PIECE", piece)
    assert hash_shards(folder, threads) == tuple(
        Digest(name, len(data), hashlib.sha256(data).hexdigest())
        for name, data in CONTENT.items()
    )


def test_lines_are_those_of_sha256sum(folder: Path) -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert checksum_lines(hash_shards(folder))[-1] == f"{empty}  emb/a.safetensors"


def test_progress_reaches_the_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "PIECE", 4)
    told: list[tuple[int, int]] = []
    hash_shards(folder, 2, lambda done, total, _: told.append((done, total)))
    total = sum(map(len, CONTENT.values()))
    assert told == sorted(told)
    assert told[-1] == (total, total)


def test_one_file_may_link_to_anywhere(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.safetensors"
    link.symlink_to(folder / "b-00001-of-00002.safetensors")
    (digest,) = hash_shards(link)
    assert digest.sha256 == hashlib.sha256(b"first").hexdigest()


def test_no_shard_is_no_digest(tmp_path: Path) -> None:
    assert hash_shards(tmp_path) == ()


def test_links_out_of_the_folder_are_not_opened(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    (folder / "c.safetensors").symlink_to(tmp_path / "secret")
    with pytest.raises(HashError, match=r"'c.safetensors' is a link that leads out"):
        hash_shards(folder)


def test_folders_are_not_entered_through_links(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.safetensors").write_bytes(b"x")
    (folder / "sub").symlink_to(tmp_path / "other")
    assert [each.file for each in hash_shards(folder)] == [*CONTENT]


def test_a_fifo_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / "c.safetensors")
    with pytest.raises(HashError, match=r"'c.safetensors': a FIFO stands where"):
        hash_shards(folder)


def test_a_name_that_no_line_can_hold_is_refused(folder: Path) -> None:
    (folder / "a\nb.safetensors").write_bytes(b"x")
    with pytest.raises(HashError, match="has invisible characters"):
        hash_shards(folder)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(HashError, match=r"^'x.safetensors': the file does not exist"):
        hash_shards(tmp_path / "x.safetensors")


def test_a_dangling_link_names_its_target(folder: Path) -> None:
    (folder / "c.safetensors").symlink_to("gone")
    with pytest.raises(HashError, match="'gone', which does not exist"):
        hash_shards(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_is_one_line(folder: Path) -> None:
    (folder / "emb").chmod(0)
    with pytest.raises(HashError, match=r"emb' cannot be listed: Permission denied"):
        hash_shards(folder)


def test_a_folder_that_cannot_be_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", broken)
    with pytest.raises(HashError, match="cannot be listed: Permission denied"):
        hash_shards(folder)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failing_disk_is_one_line(
    folder: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "readv", broken)
    with pytest.raises(HashError, match="cannot be read: Input/output error"):
        hash_shards(folder, threads)


@pytest.mark.parametrize("size", [3, 99])
def test_a_file_that_changes_meanwhile_has_no_digest(
    folder: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.readv

    def cutting(descriptor: int, buffers: Sequence[memoryview]) -> int:
        os.truncate(folder / "b-00002-of-00002.safetensors", size)
        return real(descriptor, buffers)

    monkeypatch.setattr(os, "readv", cutting)
    with pytest.raises(HashError, match="changed while it was read"):
        hash_shards(folder)


def test_a_failure_stops_the_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first read of one file fails while another has a thousand to go."""
    monkeypatch.setattr(hashing, "PIECE", 1)
    (tmp_path / "a.safetensors").write_bytes(bytes(1 << 20))
    (tmp_path / "b.safetensors").write_bytes(b"b")
    short = os.stat(tmp_path / "b.safetensors").st_ino  # noqa: PTH116 - as `fstat`
    real, reads = os.readv, 0

    def failing(descriptor: int, buffers: Sequence[memoryview]) -> int:
        nonlocal reads
        if os.fstat(descriptor).st_ino == short:
            raise OSError(5, "Input/output error")
        reads += 1
        return real(descriptor, buffers)

    monkeypatch.setattr(os, "readv", failing)
    with pytest.raises(HashError, match="Input/output error"):
        hash_shards(tmp_path, 2)
    assert reads < 1 << 20
