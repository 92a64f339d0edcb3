"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, NoReturn

import pytest

from qmanifest.errors import WriteError
from qmanifest.writing import atomic
from qmanifest.writing.atomic import (
    atomic_file,
    write_json,
    write_text,
)

if TYPE_CHECKING:
    from pathlib import Path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def no_space(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_new_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    with atomic_file(target) as stream:
        stream.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["a.json"]


def test_temporary_name_looks_like_no_checkpoint(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "model.safetensors"):
        (temporary,) = names(tmp_path)
        assert temporary.startswith(".")
        assert temporary.endswith(".tmp")


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_error_in_the_block_keeps_the_old_file(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"old")
    with pytest.raises(error), atomic_file(target) as stream:  # noqa: PT012 - the write must precede the error
        stream.write(b"half")
        raise error
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.json"]


def test_block_keeps_its_own_system_error(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), atomic_file(tmp_path / "a"):
        raise PermissionError(errno.EACCES, "Permission denied", "source")


def test_full_device_in_the_block(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"old")
    with (
        pytest.raises(
            WriteError, match=r"no space left for '.*a\.json', which takes 5,"
        ),
        atomic_file(target, 5_000),
    ):
        no_space()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_full_device_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(os if step == "fsync" else type(tmp_path), step, no_space)
    target = tmp_path / "a.json"
    target.write_bytes(b"old")
    with pytest.raises(WriteError, match="no space left"):
        write_text(target, "new")
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.json"]


def test_real_full_device() -> None:
    from pathlib import Path

    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with (
        pytest.raises(WriteError, match="no space left"),
        atomic._full_device(Path("a"), None),  # noqa: SLF001 - the one place that translates
        Path("/dev/full").open("wb", buffering=0) as stream,
    ):
        stream.write(b"x")


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="No such file or directory"):
        write_text(tmp_path / "none" / "a.txt", "x")


def test_folder_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(WriteError, match="Is a directory"):
        write_text(tmp_path / "a.txt", "x")
    assert names(tmp_path) == ["a.txt"]


def test_link_is_replaced_and_its_file_is_not(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    blob.write_bytes(b"old")
    link = tmp_path / "a.json"
    link.symlink_to(blob)
    write_text(link, "new")
    assert blob.read_bytes() == b"old"
    assert not link.is_symlink()


def test_file_and_folder_are_forced_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode))
    )
    write_text(tmp_path / "a.txt", "x")
    assert synced == [False, True]


@pytest.mark.parametrize(("code", "raised"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_folder_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, code: int, raised: bool
) -> None:
    def fail(_: int) -> None:
        raise OSError(code, "refused")

    monkeypatch.setattr(os, "fsync", fail)
    if raised:
        with pytest.raises(OSError, match="refused"):
            atomic.sync_folder(tmp_path)
    else:
        atomic.sync_folder(tmp_path)


def test_system_without_folder_handles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_DIRECTORY")
    monkeypatch.setattr(os, "open", no_space)
    atomic.sync_folder(tmp_path)


def test_json_is_readable_and_ends_with_a_newline(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": "é", "a": [1, None]})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "b": "é",\n  "a"')
    assert text.endswith("}\n")
    assert json.loads(text) == {"b": "é", "a": [1, None]}


@pytest.mark.parametrize(
    ("value", "message"),
    [(float("nan"), "cannot say"), ("\ud800", "surrogate pair at character 1")],
)
def test_json_that_cannot_be_said(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises(WriteError, match=message):
        write_json(tmp_path / "a.json", value)
    assert names(tmp_path) == []


def test_text_keeps_its_line_ends(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "a\r\nb\n")
    assert (tmp_path / "a.txt").read_bytes() == b"a\r\nb\n"
