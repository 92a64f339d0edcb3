"""GPTQ's, AWQ's and AutoRound's own tensors as checkpoints, from the config down.

Each file of vectors is written as a checkpoint beside a config, opened, lowered and
checked, and its weight is rebuilt and compared with its owner's bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from support.formats import gptq_files
from support.golden import assert_same, golden
from support.models import save, write_json

from qmanifest.backends.reference import dequantize
from qmanifest.check import check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.findings import Severity
from qmanifest.packings.arrays import Stored, from_float32, to_float32
from qmanifest.weights import CheckpointWeights

if TYPE_CHECKING:
    from pathlib import Path

Config = dict[str, Any]
QWEIGHT: Final = ("qweight", "qzeros", "scales")


@dataclass(frozen=True)
class Written:
    """A file of vectors as a checkpoint of one weight."""

    file: str
    config: Config
    parts: dict[str, str]
    """The key in the file of every part, by the end of its name."""
    expected: str
    shape: tuple[int, int]
    warned: tuple[str, ...] = ()
    """Codes of the warnings that are due."""


def gptq(file: str, version: int) -> Written:
    """A file of GPTQModel, with the zeros of either format."""
    planar, sym = "planar" in file, "_sym" in file
    layout = "gptq_p" if planar else ("gptq", "gptq_v2")[version - 1]
    config = {
        "quant_method": "gptq",
        "bits": int(file[6]),
        "group_size": 32,
        "sym": sym,
        "desc_act": file.endswith("actorder"),
        "checkpoint_format": layout,
    }
    parts = {"qweight": "qweight", "scales": "scales", "g_idx": "g_idx"}
    parts["qzeros"] = f"qzeros_v{version}"
    # zero points of 0 have no form of their own in the first format
    stored = golden(file)["qzeros_v2"].array.view(np.uint32)
    wraps = version == 1 and not sym and _has_zero(stored, int(file[6]))
    warned = ("QM506",) if wraps else ()
    return Written(file, config, parts, "dequant_in_out_f32", (64, 128), warned)


def _has_zero(words: Any, bits: int) -> bool:  # noqa: ANN401 - an array
    """Whether one of the codes of a row of 64 is 0."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    stream = np.unpackbits(octets, axis=-1, bitorder="little")
    return not stream.reshape(-1, bits).any(axis=-1).all()


def awq(file: str, version: str) -> Written:
    config = {"quant_method": "awq", "bits": 4, "group_size": 64, "version": version}
    parts = dict(zip(QWEIGHT, QWEIGHT, strict=True))
    return Written(file, config, parts, "dequant_in_out", (64, 256))


def auto_round(bits: int, sym: str, kind: str) -> Written:
    """A layer of AutoRound, with zero points minus one (`zp`) or as they are."""
    config = {
        "quant_method": "auto-round",
        "bits": bits,
        "group_size": 32,
        "sym": sym == "sym",
        "packing_format": {"zp": "auto_round:auto_gptq", "raw": "auto_round"}[kind],
    }
    stem = f"b{bits}_{sym}"
    parts = {part: f"{stem}.{part}" for part in QWEIGHT}
    expected = f"{stem}.dequant_in_out"
    return Written(f"autoround_{kind}", config, parts, expected, (32, 64))


EVERY: Final = (
    *(gptq(file, 1) for file in gptq_files() if "planar" not in file),
    *(gptq(file, 2) for file in gptq_files()),
    awq("awq_gemm_b4_g64", "gemm"),
    *(
        auto_round(bits, sym, kind)
        for bits in range(2, 9)
        for sym in ("sym", "asym")
        for kind in ("zp", "raw")
    ),
)


def opened(row: Written, folder: Path) -> CheckpointWeights:
    """Write a row as a checkpoint, check it, and open its weights."""
    vectors = golden(row.file)
    save(folder, {f"m.{end}": vectors[key] for end, key in row.parts.items()})
    write_json(folder / "config.json", {"quantization_config": row.config})
    checkpoint = open_checkpoint(folder)
    report = check(checkpoint, deep=True)
    found = [f.code for f in report.findings if f.severity is not Severity.NOTE]
    assert found == list(row.warned)
    assert report.dialect == row.config["quant_method"]
    return CheckpointWeights(checkpoint)


@pytest.mark.parametrize(
    "row", EVERY, ids=lambda row: "-".join((row.file, *row.parts.values()))
)
def test_weights_are_those_of_the_owner(row: Written, tmp_path: Path) -> None:
    source = opened(row, tmp_path)
    scheme, shape = source.weight("m.weight")
    assert shape == row.shape
    made = dequantize(scheme, source.stored("m.weight"), shape).T
    expected = golden(row.file)[row.expected]
    assert_same(from_float32(np.ascontiguousarray(made), expected.dtype), expected)


def exact_awq() -> Stored:
    """AWQ's weight before it was packed in three ways, `(outputs, inputs)`."""
    plain = golden("awq_gemm_b4_g64")
    codes = plain["codes_in_out_u8"].array.astype(np.float32).T
    zeros = np.repeat(plain["zeros_u8"].array.T, 64, axis=1)
    scales = np.repeat(to_float32(plain["scales"]).T, 64, axis=1)
    return Stored("F32", (codes - zeros) * scales)


@pytest.mark.parametrize(("version", "near"), [("gemv", 0.0), ("gemv_fast", 2e-4)])
def test_awq_s_other_layouts(version: str, near: float, tmp_path: Path) -> None:
    """The zeros of `gemv_fast` are products that were rounded to float16."""
    source = opened(awq(f"awq_{version}_b4_g64", version), tmp_path)
    scheme, shape = source.weight("m.weight")
    assert shape == (64, 256)
    made = dequantize(scheme, source.stored("m.weight"), shape)
    np.testing.assert_allclose(made, exact_awq().array, rtol=0, atol=near)
