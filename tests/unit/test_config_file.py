"""The config file: which names count, and what is wrong with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from qmanifest.findings import DefectKind
from qmanifest.reading.config_file import (
    BLOCKS,
    CONFIG_NAMES,
    ConfigFile,
    find_configs,
    read_config,
)
from qmanifest.reading.limits import MAX_CONFIG

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, text: str | bytes) -> ConfigFile:
    path = folder / "q.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_config(path, "sub/q.json")


def test_an_object(tmp_path: Path) -> None:
    file = read(tmp_path, ' {"bits": 4}\n')
    assert file.object == {"bits": 4}
    assert file.text == ' {"bits": 4}\n'
    assert file.file == "sub/q.json"
    assert file.defects == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("[]", "list"), ("null", "null"), ("7", "int"), ('"x"', "str"), ("true", "bool")],
)
def test_what_is_no_object(tmp_path: Path, text: str, shown: str) -> None:
    file = read(tmp_path, text)
    assert file.object is None
    assert file.block is None
    (defect,) = file.defects
    assert defect.kind is DefectKind.UNREADABLE_JSON
    assert defect.problem.message == f"sub/q.json holds {shown}, not an object"
    assert defect.problem.at[0].pointer == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"", DefectKind.UNREADABLE_JSON),
        (b"{", DefectKind.UNREADABLE_JSON),
        (b"\xff\xfe{\x00}\x00", DefectKind.UNREADABLE_JSON),
        (b'{"a": NaN}', DefectKind.UNREADABLE_JSON),
        (b'{"a": 1, "a": 2}', DefectKind.DUPLICATE_KEY),
        (b'{"a": "\\ud800"}', DefectKind.UNREADABLE_JSON),
        (b"[" * 65 + b"]" * 65, DefectKind.OVER_LIMIT),
    ],
)
def test_broken_json(tmp_path: Path, text: bytes, kind: DefectKind) -> None:
    file = read(tmp_path, text)
    assert file.object is None
    assert [defect.kind for defect in file.defects] == [kind]
    assert file.defects[0].problem.at[0].file == "sub/q.json"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("folder", "link", "absent"):
        file = read_config(tmp_path / name, name)
        assert file.object is None
        assert file.text == ""
        assert [d.kind for d in file.defects] == [DefectKind.UNREADABLE_JSON]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_size_limit(tmp_path: Path, more: int) -> None:
    head, tail = b'{"a": "', b'"}'
    text = head + b"x" * (MAX_CONFIG + more - len(head) - len(tail)) + tail
    file = read(tmp_path, text)
    assert (file.object is not None) == (more <= 0)
    assert [d.kind for d in file.defects] == [DefectKind.OVER_LIMIT] * (more > 0)


@pytest.mark.parametrize("key", BLOCKS)
def test_blocks_of_a_model_config(tmp_path: Path, key: str) -> None:
    file = read(tmp_path, f'{{"hidden_size": 8, "{key}": {{"bits": 4}}}}')
    assert file.block == {"bits": 4}
    assert file.holds_block
    nothing = read(tmp_path, f'{{"hidden_size": 8, "{key}": null}}')
    assert not nothing.holds_block
    assert nothing.block == nothing.object
    odd = read(tmp_path, f'{{"{key}": 7}}')
    assert odd.holds_block
    assert odd.block == {key: 7}


def test_names_are_found_best_first(tmp_path: Path) -> None:
    assert find_configs(tmp_path) == ()
    for name in ("config.json", *reversed(CONFIG_NAMES)):
        (tmp_path / name).symlink_to("nowhere")
    (tmp_path / "other.json").write_text("{}")
    *others, last = CONFIG_NAMES
    assert last == "hf_quant_config.json"
    assert find_configs(tmp_path) == (*others, "config.json", last)
