"""Stores: the shards of a folder, and which component each belongs to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from qmanifest.findings import DefectKind
from qmanifest.patterns import read_entry
from qmanifest.reading.components import Assigned, assign
from qmanifest.reading.stores import open_stores
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path


def files(folder: Path, **tables: str) -> Path:
    """Write a file of dense tensors for each keyword: names, split at spaces."""
    for file, names in tables.items():
        table = "\n".join(f"{name} F16 2x2" for name in names.split())
        write_checkpoint(folder, table, file=f"{file}.safetensors")
    return folder


def of(
    folder: Path, lists: dict[str, str], given: dict[str, Path] | None = None
) -> Assigned:
    """Find the components of lists of names, each split at spaces."""
    patterns = {
        name: tuple(read_entry(text) for text in texts.split())
        for name, texts in lists.items()
    }
    return assign(patterns, open_stores(folder), given or {})


def wanted(
    folder: Path, given: dict[str, Path] | None = None, **lists: str
) -> Assigned:
    return of(folder, lists, given)


def found(assigned: Assigned) -> dict[str, tuple[str, ...]]:
    return {name: store.files for name, store in assigned.stores.items()}


def said(assigned: Assigned) -> list[str]:
    assert all(each.kind is DefectKind.NO_CONFIG for each in assigned.defects)
    return [each.problem.message for each in assigned.defects]


def test_a_folder_of_several_models(tmp_path: Path) -> None:
    stores = open_stores(files(tmp_path, emb="a b", rr="a"))
    assert list(stores.by_name) == ["emb", "rr"]
    assert stores.root == tmp_path
    emb = stores.by_name["emb"]
    assert emb.files == ("emb.safetensors",)
    assert list(emb.index) == ["a", "b"]
    assert emb.complete
    assert emb.defects == ()
    assert emb.evidence.logical == ("a", "b")


def test_all_shards_as_one_model(tmp_path: Path) -> None:
    merged = open_stores(files(tmp_path, x="a", y="b a")).merged
    assert merged is not None
    assert set(merged.index) == {"a", "b"}
    assert [repeat.file for repeat in merged.index.repeats] == ["y.safetensors"]
    assert open_stores(tmp_path / "x.safetensors").by_name["x"].files == (
        "x.safetensors",
    )
    (tmp_path / "empty").mkdir()
    assert open_stores(tmp_path / "empty").merged is None


def test_broken_shards_are_not_complete(tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1"
    )
    store = open_stores(tmp_path).by_name["m"]
    assert not store.complete
    assert [defect.kind for defect in store.defects] == [DefectKind.NOT_SAFETENSORS]
    assert len(store.index) == 0


def test_one_model_takes_all_there_is(tmp_path: Path) -> None:
    assigned = assign({"": ()}, open_stores(files(tmp_path, x="a", y="b")), {})
    assert found(assigned) == {"": ("x.safetensors", "y.safetensors")}
    assert assigned.loose == ()
    (tmp_path / "none").mkdir()
    assert assign({"": ()}, open_stores(tmp_path / "none"), {}).stores == {}


def test_components_by_file_and_by_folder(tmp_path: Path) -> None:
    files(tmp_path, emb="a", other="b")
    files(tmp_path / "rr", model="c")
    assigned = wanted(tmp_path, emb="x", rr="y")
    assert found(assigned) == {
        "emb": ("emb.safetensors",),
        "rr": ("rr/model.safetensors",),
    }
    assert assigned.stores["rr"].root == tmp_path
    assert [store.files for store in assigned.loose] == [("other.safetensors",)]
    assert said(assigned) == []


def test_a_file_counts_before_a_folder(tmp_path: Path) -> None:
    files(files(tmp_path, emb="a") / "emb", model="b")
    assert found(wanted(tmp_path, emb="b")) == {"emb": ("emb.safetensors",)}


def test_components_by_path(tmp_path: Path) -> None:
    here, there = (
        files(tmp_path / "here", emb="a"),
        files(tmp_path / "there", x="a", y="b"),
    )
    assigned = wanted(here, {"emb": there}, emb="a")
    assert found(assigned) == {"emb": ("there/x.safetensors", "there/y.safetensors")}
    assert assigned.stores["emb"].root == tmp_path
    one = wanted(here, {"emb": there / "y.safetensors"}, emb="a")
    assert found(one) == {"emb": ("y.safetensors",)}
    assert one.stores["emb"].root == there


def test_the_current_folder_as_a_components_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = files(tmp_path / "here", x="a")
    monkeypatch.chdir(here)
    (tmp_path / "away").mkdir()
    for path in (".", "..", "../here", "./"):
        given = {"emb": type(tmp_path)(path)}
        assigned = wanted(tmp_path / "away", given, emb="a")
        if path == "..":
            assert found(assigned) == {}
            continue
        ((_, store),) = assigned.stores.items()
        assert os.path.samefile(store.root / store.files[0], here / "x.safetensors")  # noqa: PTH121 - both forms of a path


def test_a_placed_component_that_holds_nothing_is_not_found_elsewhere(
    tmp_path: Path,
) -> None:
    folder = files(tmp_path / "here", x="b")
    (tmp_path / "empty").mkdir()
    assert "emb" not in found(wanted(folder, {"emb": tmp_path / "empty"}, emb="a"))


def test_components_by_their_tensors(tmp_path: Path) -> None:
    files(tmp_path, one="a b c", two="d e", three="f")
    assigned = wanted(tmp_path, emb="d e x", rr="a b d", none="y z")
    assert found(assigned) == {"emb": ("two.safetensors",), "rr": ("one.safetensors",)}
    assert [store.name for store in assigned.loose] == ["three"]
    assert said(assigned) == []


def test_patterns_count_as_one_each(tmp_path: Path) -> None:
    files(tmp_path, one="l.0 l.1 l.2", two="m.0 n.0")
    assert found(wanted(tmp_path, emb="l.* m.* n.*")) == {"emb": ("two.safetensors",)}


def test_two_files_that_fit_equally_are_ambiguous(tmp_path: Path) -> None:
    files(tmp_path, one="a b", two="b a")
    assigned = wanted(tmp_path, emb="a b")
    assert found(assigned) == {}
    assert said(assigned) == [
        (
            "component 'emb' may be in 'one.safetensors' or 'two.safetensors': "
            "they fit equally well"
        )
    ]
    assert assigned.defects[0].problem.hint == "say which with --component emb=PATH"
    assert len(assigned.loose) == 2


def test_one_file_that_suits_two_components_equally_is_ambiguous(
    tmp_path: Path,
) -> None:
    files(tmp_path, model="a b")
    for lists in ({"emb": "a b", "rr": "a b"}, {"rr": "a b", "emb": "a b"}):
        assigned = of(tmp_path, lists)
        assert found(assigned) == {}
        names = " or ".join(map(repr, lists))
        assert said(assigned) == [
            f"'model.safetensors' may be component {names}: they fit equally well"
        ]


def test_a_file_goes_to_the_component_with_more_tensors_in_it(tmp_path: Path) -> None:
    files(tmp_path, one="a b c", two="b")
    for lists in ({"emb": "a b", "rr": "a b c"}, {"rr": "a b c", "emb": "a b"}):
        assert found(of(tmp_path, lists)) == {
            "rr": ("one.safetensors",),
            "emb": ("two.safetensors",),
        }


def test_what_is_placed_leaves_the_rest_unambiguous(tmp_path: Path) -> None:
    files(tmp_path, one="a b", two="b a")
    assigned = wanted(tmp_path, {"rr": tmp_path / "one.safetensors"}, emb="a", rr="a")
    assert found(assigned) == {"emb": ("two.safetensors",), "rr": ("one.safetensors",)}


@pytest.mark.parametrize("lists", [{"emb": "a"}, {"": "a"}])
def test_components_that_the_config_does_not_have(
    tmp_path: Path, lists: dict[str, str]
) -> None:
    files(tmp_path, emb="a")
    assigned = of(tmp_path, lists, {"enb": tmp_path})
    assert said(assigned) == ["the config has no component 'enb'"]
    assert len(assigned.stores) == 1
    expected = "name one of 'emb'" if "emb" in lists else "leave --component out"
    assert assigned.defects[0].problem.hint == expected


@pytest.mark.parametrize(
    "name",
    ["..", ".hidden", "a/b", "../x", "x" * 300, "\0", "\ud800", "nul\0l", "/etc", ""],
)
def test_hostile_component_names_find_nothing(tmp_path: Path, name: str) -> None:
    files(tmp_path / "here" / ".hidden", x="a")
    files(tmp_path, x="a")
    stores = open_stores(tmp_path / "here")
    if name:
        assert stores.named(name) is None
    assert assign({name: (), "other": ()}, stores, {}).stores == {}
