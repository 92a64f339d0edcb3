"""What is counted in a checkpoint's bytes, against numpy and in pieces of any size."""

from __future__ import annotations

import json
import os
import struct
from itertools import pairwise
from shutil import copytree
from typing import TYPE_CHECKING

import numpy as np
import pytest

from qmanifest.check import check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.elements import E4M3, E8M0
from qmanifest.findings import Severity
from qmanifest.reading.files import FileProblem
from qmanifest.rules import value_scan
from qmanifest.rules.value_counts import Counts
from qmanifest.rules.value_scan import scan
from qmanifest.tensors import TensorInfo
from qmanifest.testing import tensors_of, write_raw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from qmanifest.check import Report
    from qmanifest.testing import RawTensor

CONFIG = {
    "quantization": {
        "group_size": 32,
        "bits": 4,
        "half": {"group_size": 32, "bits": 3},
        "mx4": {"mode": "mxfp4"},
        "mx8": {"mode": "mxfp8"},
        "nv4": {"mode": "nvfp4"},
        "kept": False,
        "kept_f32": False,
    }
}
TABLE = """
half          affine 3/32  24x64  F16
brain         affine 4/32  24x64  BF16
full          affine 4/32  24x64  F32
mx4           mxfp4        24x64
mx8           mxfp8        24x64
nv4           nvfp4        24x64
nibbles       zero-point 4/32  24x64  F16 U8 u8-nibbles
points        zero-point 4/32  24x64  F16 F16 u8-nibbles
kept.weight      BF16      24x64
kept_f32.weight  F32       24x64
"""
E4M3_NAN = tuple(code | sign for code in E4M3.nan_codes for sign in (0, 0x80))
FLOATS = {"F16": "<f2", "F32": "<f4"}


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fill every tensor with random bytes, NaN patterns and zeros among them."""
    folder = tmp_path_factory.mktemp("noise")
    random = np.random.default_rng(7)
    tensors: dict[str, RawTensor] = {}
    for name, (dtype, shape, data) in tensors_of(TABLE).items():
        octets = random.integers(0, 256, len(data), np.uint8)
        octets[random.random(octets.size) < 0.3] = 0xFF
        words = octets.view("<u4")
        words[random.random(words.size) < 0.2] = 0
        tensors[name] = dtype, shape, octets.tobytes()
    write_raw(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return folder


def numbers(counts: Counts, data: bytes) -> NDArray[np.float32]:
    """Decode a tensor of floats with numpy, which the scan does not."""
    if counts.tensor.dtype == "BF16":
        upper = np.frombuffer(data, "<u2").astype("<u4") << 16
        return upper.view("<f4")
    return np.frombuffer(data, FLOATS[counts.tensor.dtype]).astype("<f4")


def test_floats_are_counted_as_numpy_does(noise: Path) -> None:
    data = (noise / "model.safetensors").read_bytes()
    scanned = scan(open_checkpoint(noise))
    floats = [c for c in scanned if c.tensor.dtype in {"F16", "BF16", "F32"}]
    assert {c.role for c in floats} == {"scales", "biases", "zeros", "kept"}
    for counts in floats:
        values = numbers(counts, data[counts.tensor.begin : counts.tensor.end])
        assert counts.elements == values.size
        assert counts.not_finite == np.count_nonzero(~np.isfinite(values)) > 0
        zeros = np.count_nonzero(values == 0)
        assert zeros > 0
        assert counts.zeros == (zeros if counts.role == "scales" else 0)
        assert not counts.written


def test_bytes_are_counted_by_their_number_format(noise: Path) -> None:
    data = (noise / "model.safetensors").read_bytes()
    found = {(c.tensor.name, c.role): c for c in scan(open_checkpoint(noise))}
    nan_codes = {
        ("mx4.scales", "scales"): E8M0.nan_codes,
        ("mx8.scales", "scales"): E8M0.nan_codes,
        ("mx8.weight", "codes"): E4M3_NAN,
        ("nv4.scales", "scales"): E4M3_NAN,
        ("mx4.weight", "codes"): (),
        ("half.weight", "codes"): (),
    }
    for key, codes in nan_codes.items():
        tensor = found[key].tensor
        octets = data[tensor.begin : tensor.end]
        assert found[key].not_finite == sum(octet in codes for octet in octets)
        assert found[key].written == (key[1] == "codes")
    zeros = found["nibbles.zeros", "zeros"]
    octets = data[zeros.tensor.begin : zeros.tensor.end]
    assert zeros.out_of_range == sum(octet > 15 for octet in octets) > 0


@pytest.mark.parametrize("chunk", [8, 16, 24, 1000, 1 << 20])
def test_pieces_change_no_count(
    noise: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scan(open_checkpoint(noise))
    monkeypatch.setattr(value_scan, "PIECE", chunk)
    assert scan(open_checkpoint(noise)) == whole


@pytest.mark.parametrize("span", [8, 64, 1000, 4096])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_spans_and_threads_change_no_count(
    noise: Path, span: int, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scan(open_checkpoint(noise))
    monkeypatch.setattr(value_scan, "SPAN", span)
    monkeypatch.setenv("QMANIFEST_THREADS", threads)
    told: list[int] = []
    assert scan(open_checkpoint(noise), lambda done, *_: told.append(done)) == whole
    steps = [after - before for before, after in pairwise([0, *told])]
    assert 0 < min(steps) <= max(steps) <= span


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_file_cut_since_its_header_was_read_is_a_problem(
    noise: Path, tmp_path: Path, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copytree(noise, tmp_path, dirs_exist_ok=True)
    opened = open_checkpoint(tmp_path)
    path = tmp_path / "model.safetensors"
    os.truncate(path, path.stat().st_size - 1)
    monkeypatch.setattr(value_scan, "SPAN", 512)
    monkeypatch.setenv("QMANIFEST_THREADS", threads)
    with pytest.raises(FileProblem, match="the file was cut"):
        scan(opened)


def test_files_are_read_in_the_order_of_their_bytes(
    noise: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMANIFEST_THREADS", "1")
    read: list[int] = []
    real = os.preadv

    def watched(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
        read.append(offset)
        return real(descriptor, buffers, offset)

    opened = open_checkpoint(noise)
    monkeypatch.setattr(os, "preadv", watched)
    scan(opened)
    assert read == sorted(read)
    assert len(read) == len(scan(opened))


def test_one_pass_serves_all_rules(
    noise: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_checkpoint(noise)
    first = scan(opened)
    monkeypatch.delattr(value_scan, "open_shard")
    assert scan(opened) is first


def test_progress_reaches_the_end(noise: Path) -> None:
    told: list[tuple[int, int, str]] = []
    scan(open_checkpoint(noise), lambda *step: told.append(step))
    done = [step[0] for step in told]
    assert done == sorted(done)
    assert (
        done[-1]
        == told[0][1]
        == sum(c.tensor.nbytes for c in scan(open_checkpoint(noise)))
    )


@pytest.mark.parametrize(
    ("dtype", "role", "data", "zeros", "written"),
    [
        ("F16", "codes", b"\0\0\0\x80", 0, False),
        ("F16", "codes", b"\0\0\1\x80", 0, True),
        ("U8", "codes", b"\0\0\0\0", 0, False),
        ("U32", "codes", b"\0\0\0\1", 0, True),
        ("U32", "scales", b"\0\0\0\1", 3, False),
        ("U8", "scales", b"\0\0\0\1", 0, False),
        ("F64", "codes", b"\0" * 8, 0, False),
    ],
)
def test_parts_of_any_dtype_are_counted(
    dtype: str, role: str, data: bytes, zeros: int, *, written: bool
) -> None:
    """The dtype may not be the promised one: that is another rule's finding."""
    counts = Counts(TensorInfo("t", dtype, (1,), 0, len(data), "f"), role, None)
    counts.add(memoryview(data))
    assert (counts.zeros, counts.written, counts.not_finite) == (zeros, written, 0)
    assert counts.elements == {"F16": 2, "F64": 0}.get(dtype, len(data))


def one_scale(folder: Path, dtype: str, bits: int, codes: str = "") -> Report:
    """Check a weight of two groups, one of whose scales has the given bits."""
    tensors = tensors_of(f"w affine 3/32 1x64 {dtype} {codes}")
    kind, shape, data = tensors["w.scales"]
    size = len(data) // 2
    tensors["w.scales"] = kind, shape, bits.to_bytes(size, "little") + data[size:]
    write_raw(folder / "model.safetensors", tensors)
    config = {"quantization": {"group_size": 32, "bits": 3}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return check(open_checkpoint(folder), deep=True)


@pytest.mark.parametrize(
    ("dtype", "bits", "code"),
    [
        ("F16", 0x7C00, "QM501"),
        ("F16", 0xFE00, "QM501"),
        ("F16", 0x7BFF, None),
        ("F16", 0x0001, None),
        ("F16", 0x8000, "QM502"),
        ("BF16", 0x7F80, "QM501"),
        ("BF16", 0xFFC0, "QM501"),
        ("BF16", 0x7F7F, None),
        ("BF16", 0x0000, "QM502"),
        ("F32", 0x7F800001, "QM501"),
        ("F32", 0x7F7FFFFF, None),
        ("F32", 0x80000000, "QM502"),
    ],
)
def test_one_scale_decides(
    tmp_path: Path, dtype: str, bits: int, code: str | None
) -> None:
    report = one_scale(tmp_path, dtype, bits)
    assert [each.code for each in report.findings] == ([code] if code else [])
    if code == "QM502":  # the other scale is sound
        assert report.findings[0].severity is Severity.WARNING
        assert "1 of 2 scales" in report.findings[0].message


@pytest.mark.parametrize("dtype", ["F16", "BF16", "F32"])
def test_least_scale_excuses_zero_codes(tmp_path: Path, dtype: str) -> None:
    """A constant layer has codes of zero; one scale that is not the least is enough."""
    least = {
        "F16": struct.pack("<e", 1e-7),
        "BF16": struct.pack("<f", 1e-7)[2:],
        "F32": struct.pack("<f", 1e-7),
    }[dtype]
    one = one_scale(tmp_path, dtype, int.from_bytes(least, "little"), "codes=0")
    assert [each.code for each in one.findings] == ["QM503"]
    all_of_them = one_scale(tmp_path, dtype, 2, "codes=0 scales=-1e-7")
    assert not all_of_them.findings


def test_cut_tensors_are_not_read(noise: Path, tmp_path: Path) -> None:
    whole = (noise / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(whole[:-100])
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    names = {c.tensor.name for c in scan(open_checkpoint(tmp_path))}
    assert names == {c.tensor.name for c in scan(open_checkpoint(noise))} - {
        "kept_f32.weight"
    }
