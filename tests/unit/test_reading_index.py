"""Index files are read strictly; what they say of shards is checked before use."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from qmanifest.findings import Defect, DefectKind, Severity
from qmanifest.reading import limits
from qmanifest.reading.capped import REPORTED
from qmanifest.reading.index_file import IndexFile, read_index

if TYPE_CHECKING:
    from pathlib import Path

SHARD = "m-00001-of-00001.safetensors"


def read(folder: Path, content: object) -> IndexFile:
    path = folder / "m.safetensors.index.json"
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    index = read_index(path, "emb/m.safetensors.index.json")
    for defect in index.defects:
        assert defect.problem.at[0].file == "emb/m.safetensors.index.json"
        assert defect.problem.hint
    return index


def only(index: IndexFile) -> Defect:
    (defect,) = index.defects
    return defect


def test_map_and_totals_are_kept_as_stored(tmp_path: Path) -> None:
    document = {
        "metadata": {"total_size": 8, "total_parameters": 2, "format": "pt"},
        "weight_map": {"b": SHARD, "a": SHARD},
    }
    index = read(tmp_path, document)
    assert index.defects == ()
    assert index.readable
    assert list(index.weight_map.items()) == [("b", SHARD), ("a", SHARD)]
    assert (index.total_size, index.total_parameters) == (8, 2)
    assert index.shards == (SHARD,)
    assert json.loads(index.text) == document


@pytest.mark.parametrize("metadata", [None, {}, {"total_size": None}])
def test_metadata_may_be_absent(tmp_path: Path, metadata: object) -> None:
    index = read(tmp_path, {"metadata": metadata, "weight_map": {}})
    assert index.defects == ()
    assert index.readable
    assert index.total_size is None
    assert index.weight_map == {}


@pytest.mark.parametrize(("value", "total"), [(8.0, 8), (0, 0), (1e15, 10**15)])
def test_whole_floats_are_totals(tmp_path: Path, value: float, total: int) -> None:
    index = read(tmp_path, {"metadata": {"total_size": value}, "weight_map": {}})
    assert index.total_size == total
    assert index.defects == ()


@pytest.mark.parametrize("value", [8.5, -1, True, "8", [8], {"a": 8}, 1e-9])
@pytest.mark.parametrize("key", ["total_size", "total_parameters"])
def test_other_totals_are_refused(tmp_path: Path, key: str, value: object) -> None:
    index = read(tmp_path, {"metadata": {key: value}, "weight_map": {"a": SHARD}})
    assert only(index).kind is DefectKind.INVALID_VALUE
    assert only(index).problem.at[0].pointer == f"/metadata/{key}"
    assert getattr(index, key) is None
    assert index.readable


@pytest.mark.parametrize("value", [[], "x", 5])
def test_metadata_of_another_type_is_refused(tmp_path: Path, value: object) -> None:
    index = read(tmp_path, {"metadata": value, "weight_map": {}})
    assert only(index).problem.at[0].pointer == "/metadata"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", DefectKind.UNREADABLE_JSON),
        (b'{"weight_map": {', DefectKind.UNREADABLE_JSON),
        (b'{"weight_map": {"a": "x", "a": "y"}}', DefectKind.DUPLICATE_KEY),
        (b'{"weight_map": ' + b"[" * 99 + b"]" * 99 + b"}", DefectKind.OVER_LIMIT),
        ([], DefectKind.INVALID_VALUE),
        (None, DefectKind.INVALID_VALUE),
        ({}, DefectKind.MISSING_KEY),
        ({"metadata": {}}, DefectKind.MISSING_KEY),
        ({"weight_map": None}, DefectKind.INVALID_VALUE),
        ({"weight_map": [SHARD]}, DefectKind.INVALID_VALUE),
    ],
)
def test_an_index_without_a_map_is_not_readable(
    tmp_path: Path, content: object, kind: DefectKind
) -> None:
    index = read(tmp_path, content)
    assert only(index).kind is kind
    assert not index.readable
    assert index.weight_map == {}


def test_a_misspelt_map_has_a_suggestion(tmp_path: Path) -> None:
    hint = only(read(tmp_path, {"weights_map": {}})).problem.hint
    assert hint == "rename 'weights_map' to 'weight_map'"


def test_a_byte_order_mark_is_only_a_warning(tmp_path: Path) -> None:
    index = read(tmp_path, b"\xef\xbb\xbf" + b'{"weight_map": {}}')
    assert only(index).problem.severity is Severity.WARNING
    assert index.readable


def test_entries_that_are_no_names_are_refused_and_counted(tmp_path: Path) -> None:
    bad = {f"t{n}": n for n in range(REPORTED + 7)}
    index = read(tmp_path, {"weight_map": {"good": SHARD, **bad}})
    assert index.weight_map == {"good": SHARD}
    assert not index.readable
    assert len(index.defects) == REPORTED + 1
    assert index.defects[0].problem.at[0].pointer == "/weight_map/t0"
    assert "7 more" in index.defects[-1].problem.message


def test_many_unsafe_names_are_counted(tmp_path: Path) -> None:
    names = {f"t{n}": f"../{n}.safetensors" for n in range(REPORTED + 7)}
    index = read(tmp_path, {"weight_map": names})
    assert len(index.defects) == REPORTED + 1
    assert len(index.unsafe) == REPORTED + 7
    assert index.shards == ()


@pytest.mark.parametrize(("count", "accepted"), [(2, True), (3, True), (4, False)])
def test_entry_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, *, accepted: bool
) -> None:
    monkeypatch.setattr(limits, "MAX_TENSORS", 3)
    index = read(tmp_path, {"weight_map": {str(n): SHARD for n in range(count)}})
    assert index.readable is accepted
    assert [d.kind for d in index.defects] == [DefectKind.OVER_LIMIT] * (not accepted)


@pytest.mark.parametrize(("extra", "accepted"), [(-1, True), (0, True), (1, False)])
def test_byte_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int, *, accepted: bool
) -> None:
    content = b'{"weight_map": {}}'
    monkeypatch.setattr(limits, "MAX_INDEX", len(content) - extra)
    index = read(tmp_path, content)
    assert index.readable is accepted
    if not accepted:
        assert only(index).kind is DefectKind.OVER_LIMIT


def test_an_index_that_is_a_fifo_or_a_link_out_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    root.mkdir()
    path = root / "m.safetensors.index.json"
    os.mkfifo(path)
    assert only(read_index(path, "m")).kind is DefectKind.UNREADABLE_JSON
    path.unlink()
    (tmp_path / "secret").write_text('{"weight_map": {}}')
    path.symlink_to(tmp_path / "secret")
    assert only(read_index(path, "m")).kind is DefectKind.UNSAFE_PATH
    assert read_index(path, "m", root=tmp_path).readable
