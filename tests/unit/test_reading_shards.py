"""Shards are grouped by name and index; nothing outside the checkpoint is opened."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from qmanifest.findings import DefectKind
from qmanifest.reading import shards as module
from qmanifest.reading.safetensors_header import Header, read_header
from qmanifest.reading.shard_names import split_name, unsafe_reason
from qmanifest.reading.shards import Folder, ShardSet, list_folder, open_file

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = {
        name: {"dtype": "U8", "shape": [1], "data_offsets": [n, n + 1]}
        for n, name in enumerate(names)
    }
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(len(names)))


def write_index(path: Path, weight_map: dict[str, str]) -> None:
    path.write_text(json.dumps({"weight_map": weight_map}))


def by_name(folder: Folder) -> dict[str, ShardSet]:
    return {each.name: each for each in folder.sets}


def test_files_are_grouped_by_name(tmp_path: Path) -> None:
    write(tmp_path / "emb.safetensors", "e")
    write(tmp_path / "rr-00002-of-00002.safetensors", "b")
    write(tmp_path / "rr-00001-of-00002.safetensors", "a")
    folder = list_folder(tmp_path)
    assert [each.name for each in folder.sets] == ["emb", "rr"]
    reranker = by_name(folder)["rr"]
    assert reranker.files == (
        "rr-00001-of-00002.safetensors",
        "rr-00002-of-00002.safetensors",
    )
    assert list(reranker.index) == ["a", "b"]
    assert reranker.numbering == (
        ("rr-00001-of-00002.safetensors", 1, 2),
        ("rr-00002-of-00002.safetensors", 2, 2),
    )
    assert reranker.complete
    assert by_name(folder)["emb"].numbering == ()


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", "a")
    write(tmp_path / ".hidden.safetensors", "b")
    write(tmp_path / "sub" / "model.safetensors", "c")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    (tmp_path / "model.safetensors.tmp").write_bytes(b"x")
    (only,) = list_folder(tmp_path).sets
    assert only.files == ("model.safetensors",)


def test_an_empty_folder_has_no_sets(tmp_path: Path) -> None:
    assert list_folder(tmp_path) == Folder(tmp_path, ())


@pytest.mark.parametrize("name", ["absent", "file"])
def test_what_cannot_be_listed_is_a_defect(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    folder = list_folder(tmp_path / name)
    assert folder.sets == ()
    (defect,) = folder.defects
    assert defect.problem.at[0].file == name


def test_prefix_names_files_from_the_checkpoint(tmp_path: Path) -> None:
    write(tmp_path / "emb" / "model.safetensors", "a")
    write_index(tmp_path / "emb" / "model.safetensors.index.json", {"a": "x/y"})
    (only,) = list_folder(tmp_path / "emb", prefix="emb/").sets
    assert only.files == ("emb/model.safetensors",)
    assert only.index["a"].file == "emb/model.safetensors"
    assert only.index_file is not None
    assert only.index_file.file == "emb/model.safetensors.index.json"


def test_index_claims_files_of_other_names_and_folders(tmp_path: Path) -> None:
    write(tmp_path / "weights.safetensors", "a")
    write(tmp_path / "sub" / "more.safetensors", "b")
    write(tmp_path / "stray.safetensors", "c")
    names = {"a": "weights.safetensors", "b": "sub/more.safetensors"}
    write_index(tmp_path / "model.safetensors.index.json", names)
    sets = by_name(list_folder(tmp_path))
    assert set(sets) == {"model", "stray"}
    assert sets["model"].files == ("sub/more.safetensors", "weights.safetensors")
    assert sets["model"].complete


def test_a_stale_shard_stays_in_the_set_of_its_name(tmp_path: Path) -> None:
    write(tmp_path / "model-00001-of-00001.safetensors", "a")
    write(tmp_path / "model-00003-of-00003.safetensors", "a")
    names = {"a": "model-00001-of-00001.safetensors"}
    write_index(tmp_path / "model.safetensors.index.json", names)
    (only,) = list_folder(tmp_path).sets
    assert len(only.files) == 2
    assert only.complete
    assert [tensor.file for tensor in only.index.repeats] == [
        "model-00003-of-00003.safetensors"
    ]


def test_absent_shards_are_facts_and_not_defects(tmp_path: Path) -> None:
    write(tmp_path / "m-00001-of-00002.safetensors", "a")
    names = {n: f"m-0000{i}-of-00002.safetensors" for i, n in enumerate("ab", 1)}
    write_index(tmp_path / "m.safetensors.index.json", names)
    (only,) = list_folder(tmp_path).sets
    assert only.missing == ("m-00002-of-00002.safetensors",)
    assert not only.complete
    assert only.defects == ()
    assert only.index_file is not None
    assert only.index_file.defects == ()


def test_an_index_alone_makes_a_set(tmp_path: Path) -> None:
    write_index(tmp_path / "m.safetensors.index.json", {"a": "m.safetensors"})
    (only,) = list_folder(tmp_path).sets
    assert (only.name, only.files, only.missing) == ("m", (), ("m.safetensors",))


def test_a_gap_in_the_numbers_is_not_complete(tmp_path: Path) -> None:
    write(tmp_path / "m-00001-of-00003.safetensors", "a")
    write(tmp_path / "m-00003-of-00003.safetensors", "b")
    (only,) = list_folder(tmp_path).sets
    assert not only.complete
    assert only.missing == ()


def test_a_huge_count_in_a_name_costs_nothing(tmp_path: Path) -> None:
    write(tmp_path / "m-1-of-999999999.safetensors", "a")
    (only,) = list_folder(tmp_path).sets
    assert not only.complete


def test_an_unreadable_header_is_not_complete_nor_indexed(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(b"")
    (only,) = list_folder(tmp_path).sets
    assert not only.complete
    assert len(only.index) == 0
    assert only.headers[0].defects


@pytest.mark.parametrize("make", ["directory", "fifo", "dangling"])
def test_what_only_looks_like_a_shard_has_a_defect(tmp_path: Path, make: str) -> None:
    path = tmp_path / "model.safetensors"
    if make == "directory":
        path.mkdir()
    elif make == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere.safetensors")
    (only,) = list_folder(tmp_path).sets
    (defect,) = only.headers[0].defects
    assert defect.kind is DefectKind.NOT_SAFETENSORS
    assert defect.problem.at[0].file == "model.safetensors"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths whose header was read, links resolved."""
    paths: list[str] = []

    def spy(path: Path, file: str) -> Header:
        paths.append(os.path.realpath(path))
        return read_header(path, file)

    monkeypatch.setattr(module, "read_header", spy)
    return paths


def test_a_link_out_of_the_checkpoint_is_not_opened(
    tmp_path: Path, opened: list[str]
) -> None:
    root = tmp_path / "ckpt"
    write(tmp_path / "outside.safetensors", "a")
    root.mkdir()
    (root / "model.safetensors").symlink_to(tmp_path / "outside.safetensors")
    (only,) = list_folder(root).sets
    (defect,) = only.defects
    assert defect.kind is DefectKind.UNSAFE_PATH
    assert defect.problem.at[0].file == "model.safetensors"
    assert only.refused == ("model.safetensors",)
    assert not only.complete
    assert opened == []


@pytest.mark.parametrize(
    "name",
    [
        "../outside.safetensors",
        "/etc/passwd",
        "//host/x.safetensors",
        "sub/../../outside.safetensors",
        "link/outside.safetensors",
        "model\0.safetensors",
        "http://127.0.0.1:9/x.safetensors",
        "sub\\x.safetensors",
        "C:x.safetensors",
        "model.safetensors.index.json",
        "",
    ],
)
def test_unsafe_names_of_an_index_are_reported_once_and_not_opened(
    tmp_path: Path, opened: list[str], name: str
) -> None:
    root = tmp_path / "ckpt"
    write(root / "model.safetensors", "a")
    write(tmp_path / "outside.safetensors", "b")
    (root / "link").symlink_to(tmp_path)
    names = {"a": "model.safetensors", "b": name, "c": name}
    write_index(root / "model.safetensors.index.json", names)
    (only,) = list_folder(root).sets
    assert only.index_file is not None
    (defect,) = only.index_file.defects
    assert defect.kind is DefectKind.UNSAFE_PATH
    assert defect.problem.at[0].pointer == "/weight_map/b"
    assert repr(name) in defect.problem.message
    assert only.index_file.unsafe == {name}
    assert only.missing == ()
    assert not only.complete
    assert opened == [str(root / "model.safetensors")]


def test_a_linked_shard_that_the_index_names_is_reported_once(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    write(tmp_path / "outside.safetensors", "b")
    root.mkdir()
    (root / "m.safetensors").symlink_to(tmp_path / "outside.safetensors")
    write_index(root / "m.safetensors.index.json", {"b": "m.safetensors"})
    (only,) = list_folder(root).sets
    assert only.index_file is not None
    assert len(only.index_file.defects) == 1
    assert only.defects == ()
    assert only.refused == ("m.safetensors",)


def test_a_hub_cache_is_read_through_its_links(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--name" / "snapshots" / "abc"
    write(snapshot.parent.parent / "blobs" / "0123", "a")
    for folder in (snapshot, snapshot / "emb"):
        folder.mkdir(parents=True, exist_ok=True)
        target = os.path.relpath(snapshot.parent.parent / "blobs" / "0123", folder)
        (folder / "model.safetensors").symlink_to(target)
    for listed in (
        list_folder(snapshot),
        list_folder(snapshot / "emb", prefix="emb/"),
    ):
        (only,) = listed.sets
        assert only.defects == ()
        assert list(only.index) == ["a"]


def test_a_link_between_folders_of_one_checkpoint_is_inside(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", "a")
    (tmp_path / "emb").mkdir()
    (tmp_path / "emb" / "model.safetensors").symlink_to("../model.safetensors")
    (only,) = list_folder(tmp_path / "emb", prefix="emb/").sets
    assert only.defects == ()
    (alone,) = list_folder(tmp_path / "emb").sets
    assert [d.kind for d in alone.defects] == [DefectKind.UNSAFE_PATH]


def test_a_shard_of_two_indexes_is_read_once(tmp_path: Path, opened: list[str]) -> None:
    write(tmp_path / "w.safetensors", "a")
    for name in ("m", "n"):
        write_index(tmp_path / f"{name}.safetensors.index.json", {"a": "w.safetensors"})
    assert len(list_folder(tmp_path).sets) == 2
    assert len(opened) == 1


def test_one_file_is_a_set_wherever_it_links_to(tmp_path: Path) -> None:
    write(tmp_path / "outside", "a")
    folder = tmp_path / "f"
    folder.mkdir()
    link = folder / "m-00001-of-00002.safetensors"
    link.symlink_to(tmp_path / "outside")
    opened_set = open_file(link)
    assert (opened_set.name, opened_set.root) == ("m", folder)
    assert opened_set.files == ("m-00001-of-00002.safetensors",)
    assert opened_set.headers[0].readable
    assert not opened_set.complete


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("model.safetensors", ("model", None)),
        ("a-b-00001-of-00012.safetensors", ("a-b", (1, 12))),
        ("m-1-of-2.safetensors", ("m", (1, 2))),
        ("-00001-of-00002.safetensors", ("-00001-of-00002", None)),
        ("m-٣-of-٤.safetensors", ("m-٣-of-٤", None)),
    ],
)
def test_names_are_split(file: str, split: tuple[str, tuple[int, int] | None]) -> None:
    assert split_name(file) == split


@pytest.mark.parametrize(
    "name",
    ["a.safetensors", "sub/a.safetensors", "a b-ä.safetensors", "..a.safetensors"],
)
def test_plain_names_are_safe(name: str) -> None:
    assert unsafe_reason(name) is None


@pytest.mark.parametrize(("extra", "safe"), [(-1, True), (0, True), (1, False)])
def test_shard_name_limit(extra: int, *, safe: bool) -> None:
    name = "a" * (1_024 + extra - len(".safetensors")) + ".safetensors"
    assert (unsafe_reason(name) is None) is safe
