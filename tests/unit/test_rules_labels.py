"""QM303: the formats behind `.qweight`, each under the label of every other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from qmanifest.check import check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.families import GPTQ
from qmanifest.findings import Severity
from qmanifest.manifest import Weight
from qmanifest.schemes import Integer, Opaque, qweight
from qmanifest.testing import write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qmanifest.findings import Finding

Config = dict[str, Any]
SHAPES: Final = ((256, 512), (512, 256))
AWQ: Final[Config] = {"quant_method": "awq", "bits": 4}
GPTQ_BLOCK: Final[Config] = {"quant_method": "gptq", "bits": 4, "desc_act": False}
AUTO_ROUND: Final[Config] = {"quant_method": "auto-round", "bits": 4, "sym": False}
LABELS: Final[dict[str, Config]] = {
    "GPTQ": GPTQ_BLOCK,
    "AWQ version gemm": AWQ | {"version": "gemm"},
    "AWQ version gemv": AWQ | {"version": "gemv"},
    "AWQ version gemv_fast": AWQ | {"version": "gemv_fast"},
    "Marlin": GPTQ_BLOCK | {"is_marlin_format": True},
}
MAKERS: Final[dict[str, Callable[[int, int], Integer | Opaque]]] = dict(qweight.RIVALS)


def table(stored: str, group: int) -> str:
    """Write the tensors of two layers of two weights each, in one of the formats."""
    lines = []
    for layer in range(2):
        for name, shape in zip(("up", "down"), SHAPES, strict=True):
            scheme = MAKERS[stored](4, group)
            weight = Weight(
                f"layers.{layer}.{name}.weight", scheme, "", None, GPTQ.names
            )
            for part in weight.parts(shape):
                assert part.shape is not None
                size = "x".join(map(str, part.shape))
                if not part.optional:
                    lines.append(f"{part.name} {part.dtypes[0]} {size}")
    return "\n".join(lines)


def found(folder: Path, stored: str, group: int, block: Config) -> list[Finding]:
    """Check what is stored under a label, and give what is no note."""
    config = {"model_type": "x", "quantization_config": block}
    write_checkpoint(folder, table(stored, group), config, config_name="config.json")
    findings = check(open_checkpoint(folder)).findings
    return [each for each in findings if each.severity is not Severity.NOTE]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("stored", MAKERS)
@pytest.mark.parametrize("group", [128, 64])
def test_one_line_says_what_is_stored(
    stored: str, label: str, group: int, tmp_path: Path
) -> None:
    block = LABELS[label] | {"group_size": group}
    findings = found(tmp_path, stored, group, block)
    if stored == label:
        assert findings == []
        return
    (only,) = findings
    assert (only.code, only.actual) == ("QM303", stored)
    assert only.message.startswith(f"4 of 4 weights are stored as {stored}, and ")
    assert only.hint == f"declare {stored}: that is what is stored"
    assert only.at[0].tensor == "layers.0.up.qweight"


def test_a_group_size_that_is_wrong_too(tmp_path: Path) -> None:
    block = GPTQ_BLOCK | {"group_size": 128}
    (only,) = found(tmp_path, "AWQ version gemm", 32, block)
    assert only.actual == "AWQ version gemm, group_size 32"


@pytest.mark.parametrize(
    ("stored", "packing"),
    [("GPTQ", "auto_round:auto_awq"), ("AWQ version gemm", "auto_round")],
)
def test_auto_round_s_labels(stored: str, packing: str, tmp_path: Path) -> None:
    block = AUTO_ROUND | {"group_size": 64, "packing_format": packing}
    (only,) = found(tmp_path, stored, 64, block)
    assert (only.code, only.actual) == ("QM303", stored)


def test_some_layers_of_another_format(tmp_path: Path) -> None:
    mixed = (
        table("GPTQ", 64).splitlines()[:6]
        + table("AWQ version gemm", 64).splitlines()[6:]
    )
    config = {"quantization_config": GPTQ_BLOCK | {"group_size": 64}}
    config["model_type"] = {}
    write_checkpoint(tmp_path, "\n".join(mixed), config, config_name="config.json")
    (only,) = [
        each
        for each in check(open_checkpoint(tmp_path)).findings
        if each.severity is not Severity.NOTE
    ]
    assert only.message.startswith("2 of 4 weights are stored as AWQ version gemm")
