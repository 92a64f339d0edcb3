"""The reference against what each format's owner makes of its own weights.

`support.formats` has the table: one row for each file.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.formats import AWQ, AWQ_PARTS, FORMATS, MODELOPT_INT4, Format
from support.golden import assert_same, golden

from qmanifest.backends.reference import dequantize, weights
from qmanifest.packings import pack, unpack
from qmanifest.packings.arrays import Stored, from_float32, row_blocks, to_float32
from qmanifest.schemes import Integer, Scaled

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme

each_format = pytest.mark.parametrize(
    "row", FORMATS, ids=lambda row: f"{row.file}-{row.parts.get('zeros', '')}"
)


def parts_of(row: Format) -> dict[str, Stored]:
    vectors = golden(row.file)
    return {role: vectors[key] for role, key in {**row.parts, **row.extra}.items()}


def codes_shape(scheme: Scheme, shape: tuple[int, ...]) -> tuple[int, ...]:
    return scheme.spread.table(shape) if isinstance(scheme, Integer) else shape


def is_flat(row: Format) -> bool:
    """Whether blocks run on from one expert to the next, or kernels take no experts."""
    if not isinstance(row.scheme, Integer | Scaled):
        return True
    return row.scheme.spread.form.startswith(("flat", "awq"))


@each_format
def test_weights_are_those_of_the_owner(row: Format) -> None:
    expected = golden(row.file)[row.expected]
    made = dequantize(row.scheme, parts_of(row), row.shape)
    made = made.swapaxes(-1, -2) if row.turned else made
    made = made + 0 if row.unsigned_zero else made  # -0 + 0 is 0
    # Some owners round to the model's dtype at the end, which no file says.
    assert_same(from_float32(made, expected.dtype), expected)


@each_format
def test_rows_are_rebuilt_alike_in_any_blocks(
    row: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dequantize(row.scheme, parts_of(row), row.shape)
    monkeypatch.setattr(weights, "row_blocks", partial(row_blocks, elements=1000))
    by_blocks = dequantize(row.scheme, parts_of(row), row.shape)
    np.testing.assert_array_equal(by_blocks.view("<u4"), whole.view("<u4"))


@each_format
def test_parts_are_those_that_the_scheme_promises(row: Format) -> None:
    stored = parts_of(row)
    promised = row.scheme.parts(row.shape)
    roles = {role for role, _, _ in promised}
    assert roles - set(row.scheme.optional) <= stored.keys() <= roles
    for role, dtypes, shape in promised:
        assert role not in stored or stored[role].dtype in dtypes
        assert role not in stored or shape in (None, stored[role].shape)


@each_format
def test_codes_pack_into_the_owner_s_words(row: Format) -> None:
    scheme, words = row.scheme, parts_of(row)["codes"]
    shape = codes_shape(scheme, row.shape)
    codes = unpack(scheme.pack, words.array, scheme.bits, shape)
    packed = Stored(words.dtype, pack(scheme.pack, codes, scheme.bits))
    assert_same(packed, words)


@pytest.mark.parametrize(
    "row", [row for row in FORMATS if not is_flat(row)][::7], ids=lambda row: row.file
)
def test_experts_are_weights_of_their_own(row: Format) -> None:
    scheme, parts = row.scheme, parts_of(row)
    promised = {role: shape for role, _, shape in scheme.parts((2, *row.shape))}
    twice = {
        role: Stored(part.dtype, np.stack([part.array] * 2).reshape(promised[role]))
        if math.prod(promised[role] or ()) == 2 * part.array.size
        else part
        for role, part in parts.items()
    }
    made = dequantize(scheme, twice, (2, *row.shape))
    alone = dequantize(scheme, parts, row.shape)
    np.testing.assert_array_equal(made, np.stack([alone, alone]))


def test_awq_s_three_forms_are_one_weight() -> None:
    plain = golden("awq_gemm_b4_g64")
    differences = plain["codes_in_out_u8"].array.astype(np.float32).T
    zeros = np.repeat(plain["zeros_u8"].array.T, 64, axis=1)
    scales = np.repeat(to_float32(plain["scales"]).T, 64, axis=1)
    exact = (differences - zeros) * scales
    for form, scheme in AWQ.items():
        vectors = golden(f"awq_{form}_b4_g64")
        parts = {role: vectors[key] for role, key in AWQ_PARTS.items()}
        made = dequantize(scheme, parts, (64, 256))
        if form == "gemv":
            np.testing.assert_array_equal(made, exact)
        else:  # the zeros of `gemv_fast` are products that were rounded to F16
            np.testing.assert_allclose(made, exact, rtol=0, atol=2e-4)


def test_modelopt_s_int4() -> None:
    vectors = golden("modelopt_int4_awq_pack")
    parts = {"codes": vectors["weight"], "scales": vectors["weight_scale"]}
    made = dequantize(MODELOPT_INT4, parts, (32, 128))
    scales = np.repeat(vectors["weight_scale"].array, 32, axis=1)
    codes = vectors["codes_int8"].array.astype(np.float32)
    np.testing.assert_array_equal(made, codes * scales)
