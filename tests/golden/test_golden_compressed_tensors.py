"""Vectors of compressed-tensors as checkpoints, read as the library reads them.

Presets are said by name alone, and packings by the library's version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.golden import assert_same, golden, metadata
from support.models import save, write_json

from qmanifest import CheckpointWeights, open_checkpoint, validate
from qmanifest.backends.reference import dequantize
from qmanifest.packings.arrays import Stored, from_float32

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.tensors import Shape

MODULE = "model.layers.0.mlp.up_proj"
PRESETS = (
    *("W3A16", "W4A16", "W4A16_ASYM", "W8A16", "W8A8"),
    *("FP8", "FP8_DYNAMIC", "FP8_BLOCK", "NVFP4A16", "NVFP4"),
    *("MXFP4A16", "MXFP6A16", "MXFP8A16"),
)
NEW, OLD = "ct_pack_int32_v0.20.1", "ct_pack_int32_v0.17.1"


def read_back(
    folder: Path, said: dict[str, Any], parts: dict[str, Stored], shape: Shape
) -> Stored:
    """Write one module and its config, and rebuild its weight."""
    config = {"quant_method": "compressed-tensors", **said}
    model = {"hidden_size": shape[1], "quantization_config": config}
    write_json(folder / "config.json", model)
    save(folder, {f"{MODULE}.{name}": part for name, part in parts.items()})
    findings = validate(folder, deep=True).findings
    assert [each.message for each in findings if each.severity != "note"] == []
    source = CheckpointWeights(open_checkpoint(folder))
    scheme, _ = source.weight(f"{MODULE}.weight")
    made = dequantize(scheme, source.stored(f"{MODULE}.weight"), shape)
    return Stored("F32", made)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset: str, tmp_path: Path) -> None:
    parts = dict(golden(f"ct_{preset}"))
    expected = parts.pop("dequant")
    said = {
        "config_groups": {preset: ["Linear"]},
        "format": metadata(f"ct_{preset}")["format"],
    }
    made = read_back(tmp_path, said, parts, expected.shape)
    assert_same(from_float32(made.array, expected.dtype), expected)


@pytest.mark.parametrize("shape", [(40, 64), (37, 35)])
@pytest.mark.parametrize(
    ("file", "bits"),
    [*((NEW, bits) for bits in range(1, 9)), *((OLD, bits) for bits in range(2, 9))],
)
def test_packed_codes(
    file: str, bits: int, shape: tuple[int, int], tmp_path: Path
) -> None:
    vectors, stem = golden(file), f"b{bits}_{shape[0]}x{shape[1]}"
    codes = vectors[f"{stem}.codes_int8"].array
    parts = {
        "weight_packed": vectors[f"{stem}.packed_dim1"],
        "weight_scale": Stored("F32", np.ones((shape[0], 1), np.float32)),
        "weight_shape": Stored("I64", np.array(shape, "<i8")),
    }
    said = {
        "format": "pack-quantized",
        "version": metadata(file)["compressed_tensors"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": bits, "strategy": "channel"},
            }
        },
    }
    made = read_back(tmp_path, said, parts, shape)
    np.testing.assert_array_equal(made.array, codes.astype(np.float32))


@pytest.mark.parametrize("shape", [(40, 64), (37, 35)])
@pytest.mark.parametrize("file", [NEW, OLD])
@pytest.mark.parametrize("bits", [3, 4, 5, 7])
def test_packed_zero_points(
    file: str, bits: int, shape: tuple[int, int], tmp_path: Path
) -> None:
    """A table of the vectors' codes as zero points, one for every weight."""
    vectors, stem = golden(file), f"b{bits}_{shape[0]}x{shape[1]}"
    codes = vectors[f"{stem}.codes_int8"].array
    parts = {
        "weight_packed": vectors[f"{stem}.packed_dim1"],
        "weight_scale": Stored("F32", np.full(shape, 0.5, np.float32)),
        "weight_shape": Stored("I64", np.array(shape, "<i8")),
        "weight_zero_point": vectors[f"{stem}.packed_dim0"],
    }
    args = {"num_bits": bits, "group_size": 1, "symmetric": False}
    said = {
        "format": "pack-quantized",
        "version": metadata(file)["compressed_tensors"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": args}},
    }
    made = read_back(tmp_path, said, parts, shape)
    np.testing.assert_array_equal(made.array, np.zeros(shape, np.float32))
    assert codes.any()


@pytest.mark.parametrize("order", ["none", "sequential", "reversed"])
def test_orders_of_groups(order: str, tmp_path: Path) -> None:
    """Old versions list the group of each input, and -1 throughout for no order."""
    parts = dict(golden("ct_W4A16"))
    expected, inputs = parts.pop("dequant"), np.arange(256, dtype="<i4")
    listed = {
        "none": np.full(256, -1, "<i4"),
        "sequential": inputs // 128,
        "reversed": inputs[::-1] // 128,
    }[order]
    if order == "reversed":  # and the scales too, so that every input has its own
        scales = parts["weight_scale"]
        parts["weight_scale"] = Stored(scales.dtype, scales.array[:, ::-1].copy())
    parts["weight_g_idx"] = Stored("I32", listed.copy())
    args = {"num_bits": 4, "group_size": 128, "actorder": "group"}
    said = {
        "format": "pack-quantized",
        "version": "0.12.2",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": args}},
    }
    made = read_back(tmp_path, said, parts, expected.shape)
    assert_same(from_float32(made.array, expected.dtype), expected)
