"""`CheckpointWeights`: parts by role, through the reference and through torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from qmanifest import (
    Affine,
    CheckpointWeights,
    Microscaling,
    ZeroPoint,
    open_checkpoint,
)
from qmanifest.backends.reference import dequantize
from qmanifest.errors import BackendError
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.testing.tables import RawTensor

TABLE: Final = """\
a.weight     affine 3/32   4x64  BF16
a.bias       F16           4
b            mxfp4         2x3x64
norm.weight  F32           64
"""
CONFIG: Final[dict[str, Any]] = {
    "bits": 3,
    "group_size": 32,
    "kept_16bit": [],
    "tensors": {"a.weight": {}, "b.weight": {"mode": "mxfp4", "bits": 4}},
}


def source(
    folder: Path, table: str = TABLE, config: object = None
) -> CheckpointWeights:
    write_checkpoint(folder, table, config or CONFIG)  # type: ignore[arg-type] # any mapping
    return CheckpointWeights(open_checkpoint(folder))


def test_names_and_parts(tmp_path: Path) -> None:
    weights = source(tmp_path)
    assert weights.names() == ("a.weight", "b.weight")
    assert weights.dense_names() == ("a.bias", "norm.weight")
    scheme, shape = weights.weight("a.weight")
    assert (scheme, shape) == (Affine(3, 32, ("F16", "BF16"), "u32-lsb"), (4, 64))
    assert weights.weight("b.weight") == (
        Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
        (2, 3, 64),
    )
    parts = weights.stored("a.weight")
    assert {role: (part.dtype, part.shape) for role, part in parts.items()} == {
        "codes": ("U32", (4, 6)),
        "scales": ("BF16", (4, 2)),
        "biases": ("BF16", (4, 2)),
    }
    infos = weights.tensors("a.weight")
    assert {role: info.name for role, info in infos.items()} == {
        "codes": "a.weight",
        "scales": "a.scales",
        "biases": "a.biases",
    }
    assert weights.scales("b.weight").name == "b.scales"


def test_dense_tensors(tmp_path: Path) -> None:
    weights = source(tmp_path)
    norm = weights.dense("norm.weight")
    assert norm is not None
    assert (norm.dtype, norm.shape) == ("F32", (64,))
    assert np.isfinite(norm.array).all()
    assert weights.dense("nothing") is None


KINDS: Final = {
    **{f"affine {bits}": f"affine {bits}/64 4x128 F16" for bits in (2, 3, 4, 5, 6, 8)},
    "nibbles": "affine 4/64 4x128 F16 u8-nibbles",
    "bytes as zeros": "zero-point 4/64 4x128 F16 U8 u8-nibbles",
    "floats as zeros": "zero-point 4/64 4x128 F16 F16 u8-nibbles",
}


@pytest.mark.parametrize("line", KINDS.values(), ids=KINDS)
def test_torch_rebuilds_what_the_reference_does(tmp_path: Path, line: str) -> None:
    pytest.importorskip("torch")
    from qmanifest.backends.pytorch import dequantize as torch_dequantize
    from qmanifest.backends.pytorch import load_weight

    bits = int(line.split()[1].partition("/")[0])
    config = CONFIG | {"bits": bits, "group_size": 64, "tensors": {"a.weight": {}}}
    weights = source(tmp_path, f"a.weight {line}", config)
    scheme, shape = weights.weight("a.weight")
    expected = dequantize(scheme, weights.stored("a.weight"), shape)
    assert expected.shape == (4, 128)
    assert len(np.unique(expected)) > 3
    found = torch_dequantize(load_weight(weights, "a.weight"))
    assert np.array_equal(found.float().numpy(), expected)


def test_zero_points_are_told_by_what_is_stored(tmp_path: Path) -> None:
    config = CONFIG | {"bits": 4, "group_size": 64, "tensors": {"a.weight": {}}}
    weights = source(tmp_path, f"a.weight {KINDS['bytes as zeros']}", config)
    scheme, _ = weights.weight("a.weight")
    assert isinstance(scheme, ZeroPoint)
    assert weights.stored("a.weight").keys() == {"codes", "scales", "zeros"}


def test_components_are_picked_by_name(tmp_path: Path) -> None:
    config = {
        "quant": "q4",
        "group": 64,
        "scheme": "",
        "protected_fp16": [],
        "emb_q4": ["a.weight"],
        "rr_q4": ["b.weight"],
        "lost_q4": ["c.weight"],
    }
    write_checkpoint(tmp_path, "a affine 4/64 4x64", config, file="emb.safetensors")
    write_checkpoint(tmp_path, "b affine 4/64 4x64", file="rr.safetensors")
    opened = open_checkpoint(tmp_path)
    assert CheckpointWeights(opened, "rr").names() == ("b.weight",)
    for name in (None, "lost", "other"):
        with pytest.raises(BackendError, match="there are: 'emb', 'rr'"):
            CheckpointWeights(opened, name)


def test_nothing_to_pick_from(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="there are: none"):
        CheckpointWeights(open_checkpoint(tmp_path))


def without(folder: Path, *names: str, **others: RawTensor) -> CheckpointWeights:
    """Write the table with some tensors lost, and others instead."""
    from qmanifest.testing import tensors_of, write_raw

    write_checkpoint(folder, "", CONFIG)
    tensors = {n: t for n, t in tensors_of(TABLE).items() if n not in names}
    write_raw(folder / "model.safetensors", tensors | others)
    return CheckpointWeights(open_checkpoint(folder))


def test_parts_that_are_lost(tmp_path: Path) -> None:
    weights = without(tmp_path, "a.biases", "b.scales")
    assert weights.weight("a.weight")[1] == (4, 64)
    with pytest.raises(BackendError, match=r"biases 'a\.biases' are in no file"):
        weights.stored("a.weight")
    with pytest.raises(BackendError, match=r"the scales of 'b\.weight' are in no file"):
        weights.scales("b.weight")


def test_weights_that_are_lost_or_stored_otherwise(tmp_path: Path) -> None:
    weights = without(tmp_path, "a.weight", **{"b.weight": ("F16", (2, 2), bytes(8))})
    with pytest.raises(BackendError, match=r"'a\.weight' is in no file; affine"):
        weights.weight("a.weight")
    with pytest.raises(
        BackendError, match=r"'b\.weight' is stored F16 \[2, 2\]; microscaling"
    ):
        weights.weight("b.weight")
    for call in (weights.weight, weights.stored, weights.scales, weights.tensors):
        with pytest.raises(BackendError, match="'x' is not a quantized weight"):
            call("x")


def test_scalars_are_no_weights(tmp_path: Path) -> None:
    weights = without(tmp_path, **{"b.weight": ("U32", (), bytes(4))})
    with pytest.raises(BackendError, match=r"'b\.weight' is stored U32 \[\]"):
        weights.weight("b.weight")
