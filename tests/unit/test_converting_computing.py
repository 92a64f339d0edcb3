"""The seam to the kernels: which of them computes what, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.models import CONFIG, MODEL, listing, normal, save, stored, write_json

from qmanifest import pack_checkpoint
from qmanifest.backends.reference import dequantize
from qmanifest.converting.computing import dense_bytes, quantize
from qmanifest.errors import BackendError, WriteError
from qmanifest.kernels import active
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.schemes import Affine
from qmanifest.writing.header import OutputTensor
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.tensors import Shape

SHAPE: Shape = (8, 128)


def packed(
    bits: int, pack: str, dtype: str = "F16"
) -> tuple[Affine, dict[str, Stored]]:
    """Pack by the reference."""
    scheme = Affine(bits, 64, ("F16", "BF16"), pack=pack)
    made = quantize_affine(stored(normal(*SHAPE), dtype), bits, 64, dtype)
    words = PACKINGS[pack].pack(made.codes, bits)
    codes = Stored("U32" if words.dtype == np.uint32 else "U8", words)
    return scheme, {"codes": codes, "scales": made.scales, "biases": made.biases}


@pytest.mark.parametrize(("bits", "pack"), [(3, "u32-lsb"), (4, "u8-nibbles")])
def test_parts_are_those_of_the_reference(bits: int, pack: str) -> None:
    scheme, expected = packed(bits, pack)
    made = quantize(active(), stored(normal(*SHAPE), "F16"), scheme, "F16")
    assert made.keys() == expected.keys()
    for role, part in expected.items():
        assert bytes(made[role]) == part.array.tobytes()


@pytest.mark.parametrize("pack", ["u32-lsb", "u8-nibbles"])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("scales", ["F16", "BF16"])
def test_dense_bytes_are_those_of_the_reference(
    pack: str, dtype: str, scales: str
) -> None:
    scheme, parts = packed(4, pack, scales)
    found = dense_bytes(active(), OutputTensor("a", dtype, SHAPE), scheme, parts, SHAPE)
    expected = from_float32(dequantize(scheme, parts, SHAPE), dtype)
    assert bytes(found) == expected.array.tobytes()


def test_values_that_are_lost_are_counted() -> None:
    scheme, parts = packed(4, "u32-lsb", "BF16")
    scales = parts["scales"].array.copy()
    scales[0, 0] = 0x4F80  # 2**32, where F16 ends at 65504
    parts["scales"] = Stored("BF16", scales)
    with pytest.raises(WriteError, match="values of 'a' are too large for F16"):
        dense_bytes(active(), OutputTensor("a", "F16", SHAPE), scheme, parts, SHAPE)


def test_kernels_that_are_unknown_are_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = save(tmp_path / "in", {n: stored(v, "F16") for n, v in MODEL.items()})
    config = write_json(tmp_path / "c.json", CONFIG)
    monkeypatch.setenv("QMANIFEST_KERNELS", "none")
    with pytest.raises(BackendError, match="QMANIFEST_KERNELS is 'none'"):
        pack_checkpoint(source, config, tmp_path / "out")
    assert listing(tmp_path / "out") == []


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_kernels_and_threads_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    source = save(tmp_path / "in", {n: stored(v, "F16") for n, v in MODEL.items()})
    config = write_json(tmp_path / "c.json", CONFIG)
    pack_checkpoint(source, config, tmp_path / "one")
    monkeypatch.setenv("QMANIFEST_KERNELS", "reference")
    monkeypatch.setenv("QMANIFEST_THREADS", threads)
    pack_checkpoint(source, config, tmp_path / "two")
    assert listing(tmp_path / "one") == listing(tmp_path / "two")
    for file in listing(tmp_path / "one"):
        one, two = (tmp_path / each / file for each in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
