"""Files are forced to disk while they are written, and no failure of that is lost."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

import pytest

from qmanifest.errors import WriteError
from qmanifest.writing import early_sync
from qmanifest.writing.shards import OutputTensor, plan_shards, write_shard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPECS = [OutputTensor("a", "U8", (40,)), OutputTensor("b", "U8", (40,))]
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fdatasync"), reason="the system has no such call"
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_sync, "EARLY", 10)


def write(folder: Path, pause: threading.Event | None = None) -> None:
    """Write a shard of eight buffers of ten bytes."""

    def data(_: OutputTensor) -> Iterator[bytes]:
        for _time in range(4):
            yield bytes(10)
            if pause is not None:
                pause.wait(5)
                pause.clear()

    (plan,) = plan_shards(SPECS)
    write_shard(folder, plan, data, {})


def test_synced_again_and_again_but_never_twice_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, real = threading.Event(), os.fdatasync
    running, most, times = 0, 0, 0

    def sync(descriptor: int) -> None:
        nonlocal running, most, times
        running += 1
        most, times = max(most, running), times + 1
        real(descriptor)
        running -= 1
        done.set()

    monkeypatch.setattr(os, "fdatasync", sync)
    write(tmp_path, done)
    assert most == 1
    assert times > 1
    assert (tmp_path / "model.safetensors").stat().st_size > 80


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = threading.active_count()
    write(tmp_path)
    assert threading.active_count() == before


def test_small_files_start_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_sync, "EARLY", 81)
    monkeypatch.delattr(early_sync, "ThreadPoolExecutor")
    write(tmp_path)


def test_systems_without_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.delattr(early_sync, "ThreadPoolExecutor")
    write(tmp_path)


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.EIO, "cannot write .*Input/output"), (errno.ENOSPC, "no space left")],
)
@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_on_the_thread_fails_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    says: str,
    failing: int,
) -> None:
    """A later `fsync` would call the same file sound."""
    done, times = threading.Event(), 0

    def sync(_: int) -> None:
        nonlocal times
        times += 1
        done.set()
        if times == failing:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fdatasync", sync)
    with pytest.raises(WriteError, match=says):
        write(tmp_path, done)
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_data_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the thread has ended before the descriptor is closed."""
    closed: list[bool] = []

    def sync(descriptor: int) -> None:
        threading.Event().wait(0.05)
        os.fstat(descriptor)  # raises where it is closed
        closed.append(False)

    def data(_: OutputTensor) -> Iterator[bytes]:
        yield bytes(10)
        raise ValueError("no more")

    monkeypatch.setattr(os, "fdatasync", sync)
    (plan,) = plan_shards(SPECS)
    with pytest.raises(ValueError, match="no more"):
        write_shard(tmp_path, plan, data, {})
    assert closed == [False]
    assert not list(tmp_path.iterdir())
