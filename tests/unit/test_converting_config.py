"""`write_config`: a manifest as the file that its dialect's readers look for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.models import listing, write_json

from qmanifest import (
    Affine,
    Component,
    Kept,
    Manifest,
    Weight,
    open_config,
    write_config,
)
from qmanifest.dtypes import FLOAT16
from qmanifest.errors import EmitError, UnknownDialectError, WriteError

if TYPE_CHECKING:
    from pathlib import Path

WEIGHT = Weight("a.weight", Affine(4, 64, FLOAT16, "u32-lsb"), "", (4, 64))
ONE = Manifest(
    "made", components=(Component("", (WEIGHT,), (Kept("b.weight", "", FLOAT16),)),)
)
TWO = Manifest(
    "made", components=tuple(Component(name, (WEIGHT,)) for name in ("emb", "rr"))
)


@pytest.mark.parametrize(
    ("dialect", "manifest"), [("tensor-map", ONE), ("q4-lists", TWO)]
)
def test_a_file_of_its_own(tmp_path: Path, dialect: str, manifest: Manifest) -> None:
    path = write_config(manifest, tmp_path, dialect=dialect)
    assert path == tmp_path / "quant_config.json"
    assert path.read_text().endswith("}\n")
    opened = open_config(path)
    assert opened.defects == ()
    assert opened.manifest is not None
    assert opened.manifest.dialect == dialect
    found = [(c.name, w.name, w.scheme.bits) for c, w in opened.manifest.weights()]
    assert found == [(c.name, w.name, 4) for c, w in manifest.weights()]


def test_tensor_map_is_the_default(tmp_path: Path) -> None:
    config = json.loads(write_config(ONE, tmp_path).read_text())
    assert config["tensors"] == {
        "a.weight": {"bits": 4, "group_size": 64, "shape": [4, 64]}
    }
    assert config["kept_16bit"] == ["b.weight"]


def test_mlx_goes_into_the_models_config(tmp_path: Path) -> None:
    block = {"group_size": 64, "bits": 4, "mode": "affine", "b": False}
    twins = {"quantization": block, "quantization_config": block}
    path = write_config(ONE, tmp_path, dialect="mlx")
    assert path == tmp_path / "config.json"
    assert json.loads(path.read_text()) == twins
    write_json(path, {"hidden_size": 8, "quantization": {"bits": 2}})
    write_config(ONE, tmp_path, dialect="mlx")
    assert json.loads(path.read_text()) == {"hidden_size": 8} | twins
    assert open_config(path).defects == ()


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_model_config_that_cannot_be_read_is_not_replaced(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(WriteError, match="cannot be read"):
        write_config(ONE, tmp_path, dialect="mlx")
    assert path.read_text() == text


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(EmitError):
        write_config(TWO, tmp_path)
    with pytest.raises(EmitError):
        write_config(ONE, tmp_path, dialect="q4-lists")
    with pytest.raises(UnknownDialectError):
        write_config(ONE, tmp_path, dialect="gguf")
    assert listing(tmp_path) == []
    with pytest.raises(WriteError):
        write_config(ONE, tmp_path / "nowhere")
