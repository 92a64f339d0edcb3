"""Checkpoints from a table: the library reads them, and their content is sane."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import safetensors

from qmanifest.dtypes import DTYPES, nbytes
from qmanifest.elements import E4M3, E8M0
from qmanifest.testing import tensors_of, write_checkpoint, write_raw
from qmanifest.testing.content import ALPHABETS, SMALL_SCALES, content, filled

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.tensors import Shape

TABLE = """
# name       scheme           shape    dtypes
blk.0.proj   affine 4/64      32x128   F16     # a comment
blk.1.proj.weight affine 3/32 4x64     BF16
old.proj     zero-point 4/64  32x128   F16 U8 u8-nibbles
mx           mxfp4            32x128

mx8          mxfp8            4x32
nv           nvfp4            2x4x32
norm.weight  F16              64
temperature  F32              scalar
none         BF16             0x64
"""
EXPECTED: dict[str, tuple[str, Shape]] = {
    "blk.0.proj.weight": ("U32", (32, 16)),
    "blk.0.proj.scales": ("F16", (32, 2)),
    "blk.0.proj.biases": ("F16", (32, 2)),
    "blk.1.proj.weight": ("U32", (4, 6)),
    "blk.1.proj.scales": ("BF16", (4, 2)),
    "blk.1.proj.biases": ("BF16", (4, 2)),
    "old.proj.weight": ("U8", (32, 64)),
    "old.proj.scales": ("F16", (32, 2)),
    "old.proj.zeros": ("U8", (32, 2)),
    "mx.weight": ("U32", (32, 16)),
    "mx.scales": ("U8", (32, 4)),
    "mx8.weight": ("U32", (4, 8)),
    "mx8.scales": ("U8", (4, 1)),
    "nv.weight": ("U32", (2, 4, 4)),
    "nv.scales": ("U8", (2, 4, 2)),
    "norm.weight": ("F16", (64,)),
    "temperature": ("F32", ()),
    "none": ("BF16", (0, 64)),
}


def test_table_makes_every_part() -> None:
    made = tensors_of(TABLE)
    assert {name: tensor[:2] for name, tensor in made.items()} == EXPECTED
    for dtype, shape, data in made.values():
        assert len(data) == nbytes(dtype, shape)


def test_library_reads_the_checkpoint(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "new", TABLE, {"bits": 4})
    assert json.loads((folder / "quant_config.json").read_bytes()) == {"bits": 4}
    with safetensors.safe_open(folder / "model.safetensors", "pt") as opened:
        assert opened.metadata() == {"format": "mlx"}
        read = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 - no mapping
        found = {
            name: (each.get_dtype(), tuple(each.get_shape()))
            for name, each in read.items()
        }
    assert found == EXPECTED


def test_names_of_files_and_metadata(tmp_path: Path) -> None:
    write_checkpoint(
        tmp_path,
        "a F16 4",
        {},
        config_name="config.json",
        file="emb.safetensors",
        metadata={},
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "emb.safetensors",
    ]
    text = (tmp_path / "emb.safetensors").read_bytes()[8:]
    assert text.startswith(b'{"__metadata__": {}, "a": ')


def test_no_config(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "a F16 4")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_scales_are_small_and_positive() -> None:
    made = tensors_of(TABLE)
    scales = np.frombuffer(made["blk.0.proj.scales"][2], "<f2")
    assert ((scales >= 0.005) & (scales <= 0.05)).all()
    for name, element in (("mx.scales", E8M0), ("nv.scales", E4M3)):
        values = [element.values[code] for code in made[name][2]]
        assert all(0.005 < value < 0.05 for value in values)
    biases = np.frombuffer(made["blk.0.proj.biases"][2], "<f2")
    assert {bool(sign) for sign in np.signbit(biases)} == {True, False}
    assert (abs(biases) <= 0.05).all()
    assert not {0x7F, 0xFF} & {*made["mx8.weight"][2]}
    assert 0 < min(made["old.proj.zeros"][2]) <= max(made["old.proj.zeros"][2]) < 16


def test_content_depends_on_the_name_alone() -> None:
    first, other = (
        tensors_of("x affine 4/64 4x64"),
        tensors_of("y F16 2\nx affine 4/64 4x64"),
    )
    assert {name: other[name] for name in first} == first
    assert content("a", "U32", (64,)) != content("b", "U32", (64,))
    assert content("a", "U32", (2,)).hex() == "bfc04507f8f21965"


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_no_content_is_all_zero(dtype: str) -> None:
    for number in range(40):
        assert any(content(f"n{number}", dtype, (8,)))


def test_alphabets_have_no_special_numbers() -> None:
    import torch

    for code, letters in ALPHABETS.items():
        data = torch.tensor(bytearray(letters), dtype=torch.uint8)
        name = DTYPES[code].torch
        assert name is not None
        values = data.view(getattr(torch, name)).to(torch.float32)
        assert values.isfinite().all(), code
    for name, letters in SMALL_SCALES.items():
        values = torch.tensor(
            [{"e8m0": E8M0, "e4m3": E4M3}[name].values[c] for c in letters]
        )
        assert ((values > 0.005) & (values < 0.05)).all()


@pytest.mark.parametrize(
    ("line", "name", "data"),
    [
        ("a F16 2 =0", "a", bytes(4)),
        ("a F16 1 =inf", "a", struct.pack("<e", math.inf)),
        ("a BF16 2 =1", "a", b"\x80\x3f" * 2),
        ("a C64 1 =1", "a", struct.pack("<2f", 1, 1)),
        ("a F8_E4M3 2 =0x7f", "a", b"\x7f\x7f"),
        ("a F4 4 =0x11", "a", b"\x11\x11"),
        ("a I16 1 =-2", "a", b"\xfe\xff"),
        ("a affine 4/64 1x64 codes=0", "a.weight", bytes(32)),
        ("a affine 4/64 1x64 BF16 scales=nan biases=0", "a.scales", b"\xc0\x7f"),
        ("a mxfp4 1x32 scales=255", "a.scales", b"\xff"),
    ],
)
def test_values(line: str, name: str, data: bytes) -> None:
    assert tensors_of(line)[name][2] == data


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a", "not enough values"),
        ("a F16", "not enough values"),
        ("a F16 4 F16", "too many values"),
        ("a Q4 1/2 4x4", "'Q4'"),
        ("a affine 4/64", "not enough values"),
        ("a affine 4/0 4x64", "line 1"),
        ("a affine 4/64 4x65", "whole number of words"),
        ("a affine 4/64 4x64 Q4", r"\['Q4'\]"),
        ("a affine 4/64 4x64 F16 F16", "too many words"),
        ("a affine 4/64 4x64 zeros=1", r"no part takes \['zeros'\]"),
        ("a F16 4 scales=1", r"no part takes \['scales'\]"),
        ("a U8 4 =256", "line 1 'a U8 4 =256'"),
        ("a F16 4\na F16 4", "line 2 makes 'a' again"),
    ],
)
def test_line_that_cannot_be_read(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tensors_of(line)


def test_raw_file_is_written_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    tensors: dict[str, tuple[str, Shape, bytes]] = {"é": ("Q9", (5,), b"abc")}
    write_raw(path, tensors, tail=b"tail", cut=2)
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    assert length % 8 == 0
    assert whole[8 + length :] == b"abcta"
    assert json.loads(whole[8 : 8 + length]) == {
        "é": {"dtype": "Q9", "shape": [5], "data_offsets": [0, 3]}
    }
    write_raw(path, tensors, b"\xff{}")
    assert path.read_bytes() == b"\x03\0\0\0\0\0\0\0\xff{}abc"
    write_raw(path, {}, "{é")
    assert path.read_bytes() == b"\x03\0\0\0\0\0\0\0{\xc3\xa9"
    write_raw(path, {}, cut=99)
    assert path.read_bytes() == b""


def test_filled_in_a_float64() -> None:
    assert filled("F64", (), "-1.5") == struct.pack("<d", -1.5)


def test_import_loads_no_numpy() -> None:
    code = (
        "import sys, qmanifest.testing, qmanifest.sizes, qmanifest.writing.index; "
        "sys.exit(bool({'numpy', 'torch', 'hypothesis', 'typer'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_filled_with_numbers_in_turns_and_with_a_text() -> None:
    assert filled("I64", (2,), "32,64") == struct.pack("<2q", 32, 64)
    assert filled("U8", (5,), "1,2") == bytes([1, 2, 1, 2, 1])
    assert filled("U8", (4,), "text:[1]") == b"[1] "
    with pytest.raises(ValueError, match="a text of 3 bytes in 2"):
        filled("U8", (2,), "text:abc")
