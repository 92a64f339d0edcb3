"""Functions that make schemes by numbers: each reads the files of its format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from support.formats import FORMATS, Format
from support.golden import assert_same, golden

from qmanifest.backends.reference import dequantize
from qmanifest.packings.arrays import from_float32
from qmanifest.schemes import floats, qweight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.schemes import Scheme

ROWS: Final = {row.file: row for row in FORMATS}


def made() -> Iterator[tuple[Format, Scheme]]:
    for row in FORMATS:
        if row.file.startswith("gptq"):
            yield (
                row,
                qweight.gptq(
                    int(row.file[6]),
                    32,
                    plus=1 if row.parts["zeros"] == "qzeros_v1" else 0,
                    planes="planar" in row.file,
                    listed=row.file.endswith("actorder"),
                ),
            )
    others: dict[str, Scheme | None] = {
        "awq_gemm_b4_g64": qweight.awq_gemm(4, 64),
        "fp8_block32_float": floats.fp8_blocks(32, 32, floats.WIDE, "float"),
        "fp8_block32_ue8m0": floats.fp8_blocks(32, 32, floats.E8M0, "e8m0"),
        "modelopt_nvfp4": floats.nvfp4("u8-nibbles"),
        "gptoss_mxfp4": floats.mxfp4("u8-nibbles-blocks", floats.E8M0, "e8m0"),
        "ct_MXFP4A16": floats.mxfp4("u8-nibbles", floats.E8M0, "e8m0"),
        "ct_MXFP8A16": floats.mxfp8(),
        "ct_NVFP4": floats.packed_floats("nv_fp", 4),
    }
    for file, scheme in others.items():
        assert scheme is not None
        yield ROWS[file], scheme


@pytest.mark.parametrize(
    ("row", "scheme"),
    [
        pytest.param(*each, id=f"{each[0].file}-{each[0].parts.get('zeros')}")
        for each in made()
    ],
)
def test_weights_are_those_of_the_owner(row: Format, scheme: Scheme) -> None:
    vectors = golden(row.file)
    parts = {role: vectors[key] for role, key in row.parts.items()}
    weight = dequantize(scheme, parts, row.shape)
    weight = weight.swapaxes(-1, -2) if row.turned else weight
    weight = weight + 0 if row.unsigned_zero else weight
    expected = vectors[row.expected]
    assert_same(from_float32(weight, expected.dtype), expected)
