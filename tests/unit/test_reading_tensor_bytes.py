"""Tensor bytes are read in pieces, and a file cut meanwhile is a problem."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from qmanifest.findings import DefectKind
from qmanifest.reading import tensor_bytes
from qmanifest.reading.files import FileProblem
from qmanifest.reading.tensor_bytes import iter_tensor, read_tensor
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONTENT = bytes(range(100))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "emb").mkdir()
    (tmp_path / "emb" / "m.safetensors").write_bytes(CONTENT)
    return tmp_path


def tensor(begin: int, end: int) -> TensorInfo:
    return TensorInfo("x", "U8", (end - begin,), begin, end, "emb/m.safetensors")


@pytest.mark.parametrize(("begin", "end"), [(0, 100), (10, 33), (99, 100), (50, 50)])
def test_all_bytes_are_read(root: Path, begin: int, end: int) -> None:
    assert bytes(read_tensor(root, tensor(begin, end))) == CONTENT[begin:end]


def test_a_buffer_is_filled_in_place(root: Path) -> None:
    buffer = bytearray(b"-" * 12)
    view = read_tensor(root, tensor(20, 30), into=buffer)
    assert buffer == CONTENT[20:30] + b"--"
    assert len(view) == 10
    assert view.obj is buffer


def test_a_small_buffer_is_a_mistake(root: Path) -> None:
    with pytest.raises(ValueError, match="10 bytes; the buffer has 9"):
        read_tensor(root, tensor(20, 30), into=bytearray(9))


@pytest.mark.parametrize("chunk", [1, 7, 33, 1000])
def test_chunks_follow_one_another(root: Path, chunk: int) -> None:
    pieces = [bytes(piece) for piece in iter_tensor(root, tensor(5, 71), chunk)]
    assert b"".join(pieces) == CONTENT[5:71]
    assert all(len(piece) == chunk for piece in pieces[:-1])


def test_an_empty_tensor_has_no_chunks(root: Path) -> None:
    assert list(iter_tensor(root, tensor(5, 5))) == []


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_chunk_has_at_least_a_byte(root: Path, chunk: int) -> None:
    with pytest.raises(ValueError, match="at least 1 byte"):
        list(iter_tensor(root, tensor(5, 6), chunk))


def test_a_short_file_is_refused_before_anything_is_allocated(root: Path) -> None:
    giant = tensor(10, 1 << 60)
    for read in (read_tensor, lambda *a: list(iter_tensor(*a))):
        with pytest.raises(FileProblem, match="file was cut") as caught:
            read(root, giant)
        assert caught.value.kind is DefectKind.TRUNCATED
        assert (caught.value.expected, caught.value.actual) == (1 << 60, 100)


def test_short_reads_are_completed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.preadv

    def short(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
        return real(descriptor, [buffers[0][:3]], offset)

    monkeypatch.setattr(os, "preadv", short)
    monkeypatch.setattr(tensor_bytes, "CHUNK", 8)
    assert bytes(read_tensor(root, tensor(10, 33))) == CONTENT[10:33]


def test_a_file_cut_while_it_is_read_is_a_problem(root: Path) -> None:
    chunks = iter_tensor(root, tensor(0, 100), 40)
    assert bytes(next(chunks)) == CONTENT[:40]
    os.truncate(root / "emb" / "m.safetensors", 60)
    with pytest.raises(FileProblem, match="the file has 60 bytes"):
        next(chunks)


def test_a_failing_disk_is_a_problem(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(FileProblem, match="Input/output error"):
        read_tensor(root, tensor(0, 5))


def test_a_shard_that_became_a_fifo_does_not_hang(root: Path) -> None:
    path = root / "emb" / "m.safetensors"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileProblem, match="FIFO"):
        read_tensor(root, tensor(0, 5))
