"""Rules about the bytes of GPTQ's tensors: zero points, padding, lists of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.models import save, write_json

from qmanifest.backends.reference import dequantize
from qmanifest.check import check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.findings import Severity
from qmanifest.packings import pack
from qmanifest.packings.arrays import Stored, from_float32
from qmanifest.weights import CheckpointWeights

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.findings import Finding

Config = dict[str, Any]
Codes = npt.NDArray[np.uint8]
GROUP: Final = 32


def layer(
    zeros: Codes, inputs: int, bits: int, *, planes: bool = False
) -> dict[str, Stored]:
    """Make a layer of GPTQ's with stored zero points `(groups, outputs)`."""
    rows = "i32-planes" if planes else "i32-lsb"
    codes = np.ones((zeros.shape[1], inputs), np.uint8)
    scales = np.full(zeros.shape, 0.5, np.float32)
    return {
        "m.qweight": Stored("I32", pack(f"{rows}-down", codes, bits)),
        "m.qzeros": Stored("I32", pack(rows, zeros, bits)),
        "m.scales": from_float32(scales, "F16"),
    }


def found(
    folder: Path, tensors: dict[str, Stored], bits: int, **said: object
) -> list[Finding]:
    """Check a layer under a config, and give what is no note."""
    save(folder, tensors)
    block = {"quant_method": "gptq", "bits": bits, "group_size": GROUP, **said}
    write_json(folder / "config.json", {"quantization_config": block})
    report = check(open_checkpoint(folder), deep=True)
    assert "QM506" in report.checked
    return [each for each in report.findings if each.severity is not Severity.NOTE]


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("version", ["gptq", "gptq_v2", "gptq_p"])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_zero_points_of_symmetric_weights(
    bits: int, version: str, off: int, tmp_path: Path
) -> None:
    planes = version == "gptq_p" or bits in {5, 6, 7}
    expected = (1 << (bits - 1)) - (version == "gptq" and not planes)
    zeros = np.full((2, 64), expected + off, np.uint8)
    tensors = layer(zeros, 64, bits, planes=planes)
    findings = found(tmp_path, tensors, bits, checkpoint_format=version)
    if not off:
        assert findings == []
        return
    (only,) = findings
    assert (only.code, only.severity) == ("QM506", Severity.WARNING)
    other = "gptq_v2" if version == "gptq" and not planes else "gptq"
    towards = 1 if other == "gptq_v2" else -1
    is_other = off == towards
    assert (f"checkpoint_format {other!r}" in str(only.hint)) == is_other
    assert ("sym false" in str(only.hint)) == (not is_other)


def test_one_zero_point_of_another_value_is_enough(tmp_path: Path) -> None:
    zeros = np.full((2, 64), 7, np.uint8)
    zeros[1, 63] = 8
    (only,) = found(tmp_path, layer(zeros, 64, 4), 4)
    assert only.code == "QM506"
    assert found(tmp_path, layer(zeros, 64, 4), 4, sym=False) == []


def test_bits_behind_the_last_zero_point_are_nobody_s(tmp_path: Path) -> None:
    zeros = np.full((2, 20), 7, np.uint8)
    tensors = layer(zeros, 64, 4)
    words = tensors["m.qzeros"].array.copy()
    words[:, -1] |= np.int32(-(1 << 16))
    tensors["m.qzeros"] = Stored("I32", words)
    assert found(tmp_path, tensors, 4) == []
    assert found(tmp_path, tensors, 4, sym=False) == []
    (only,) = found(tmp_path, tensors, 4, checkpoint_format="gptq_v2")
    assert only.code == "QM506"


@given(
    bits=st.sampled_from([2, 3, 4, 8]),
    seed=st.integers(0, 1 << 16),
    outputs=st.integers(1, 70),
)
def test_zero_points_without_room_are_counted(
    bits: int, seed: int, outputs: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    largest = (1 << bits) - 1
    random = np.random.default_rng(seed)
    low = max(0, largest - int(random.integers(1, 4)))
    zeros = random.integers(low, largest + 1, (2, outputs)).astype(np.uint8)
    folder = tmp_path_factory.mktemp("room")
    tensors, count = layer(zeros, 64, bits), int((zeros == largest).sum())
    findings = found(folder, tensors, bits, sym=False)
    assert [each.actual for each in findings] == ([count] if count else [])
    as_they_are = found(folder, tensors, bits, sym=False, checkpoint_format="gptq_v2")
    assert as_they_are == []


@pytest.mark.parametrize(("bits", "inputs"), [(4, 100), (3, 50), (8, 62), (2, 40)])
def test_bits_behind_the_last_code(bits: int, inputs: int, tmp_path: Path) -> None:
    zeros = np.full((1, 32), (1 << (bits - 1)) - 1, np.uint8)
    tensors = layer(zeros, inputs, bits)
    tensors["m.g_idx"] = Stored("I32", np.zeros(inputs, np.int32))
    assert found(tmp_path, tensors, bits, group_size=-1) == []
    words = tensors["m.qweight"].array.copy()
    words[-1, 3] |= np.int32(-(1 << 31))
    tensors["m.qweight"] = Stored("I32", words)
    (only,) = found(tmp_path, tensors, bits, group_size=-1)
    assert (only.code, only.actual) == ("QM505", 1)
    assert f"[32, {inputs}] in {bits} bits" in only.message


def test_a_padded_weight_has_the_inputs_that_are_listed(tmp_path: Path) -> None:
    tensors = layer(np.full((1, 32), 7, np.uint8), 100, 4)
    tensors["m.g_idx"] = Stored("I32", np.zeros(100, np.int32))
    save(tmp_path, tensors)
    block = {"quant_method": "gptq", "bits": 4, "group_size": -1}
    write_json(tmp_path / "config.json", {"quantization_config": block})
    source = CheckpointWeights(open_checkpoint(tmp_path))
    scheme, shape = source.weight("m.weight")
    assert shape == (32, 100)
    made = dequantize(scheme, source.stored("m.weight"), shape)
    np.testing.assert_array_equal(made, np.full((32, 100), (1 - 8) * 0.5))


IN_ORDER: Final = np.repeat(np.arange(2, dtype=np.int32), GROUP)


@pytest.mark.parametrize(
    ("groups", "declared", "severity"),
    [
        (IN_ORDER, False, None),
        (IN_ORDER, True, None),
        (IN_ORDER[::-1], True, None),
        (IN_ORDER[::-1], False, Severity.WARNING),
        (np.full(64, -1, np.int32), True, None),
        (IN_ORDER - 1, True, Severity.ERROR),
        (IN_ORDER * 2, True, Severity.ERROR),
        (IN_ORDER * 2, False, Severity.ERROR),
    ],
)
def test_lists_of_groups(
    groups: npt.NDArray[np.int32],
    declared: bool,  # noqa: FBT001 - a case
    severity: Severity | None,
    tmp_path: Path,
) -> None:
    tensors = layer(np.full((2, 32), 7, np.uint8), 64, 4)
    tensors["m.g_idx"] = Stored("I32", np.ascontiguousarray(groups))
    findings = found(tmp_path, tensors, 4, desc_act=declared)
    expected = [] if severity is None else [("QM504", severity)]
    assert [(each.code, each.severity) for each in findings] == expected


def test_a_file_that_is_cut_is_not_read(tmp_path: Path) -> None:
    tensors = layer(np.full((2, 32), 9, np.uint8), 64, 4)
    tensors["m.g_idx"] = Stored("I32", IN_ORDER * 2)
    save(tmp_path, dict(reversed(tensors.items())))
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    block = {"quant_method": "gptq", "bits": 4, "group_size": GROUP}
    write_json(tmp_path / "config.json", {"quantization_config": block})
    length = 8 + int.from_bytes(whole[:8], "little")
    path.write_bytes(whole[: length + 40])
    codes = {f.code for f in check(open_checkpoint(tmp_path), deep=True).findings}
    assert codes == {"QM002"}
