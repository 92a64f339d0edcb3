"""The reference beyond rows of groups: conventions one by one, and hostile parts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from support.formats import CT, FORMATS, TORCHAO_NVFP4, Format
from support.golden import golden

from qmanifest.backends.reference import dequantize
from qmanifest.errors import BackendError, PackingError
from qmanifest.packings import pack
from qmanifest.packings.arrays import Stored, from_float32, storage_dtype
from qmanifest.schemes import (
    NO_ZERO,
    Codebook,
    Dim,
    Extra,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    Zero,
    plain_zero,
)
from qmanifest.spreads import Spread

Parts = dict[str, Stored]
FLOAT = ("F16", "BF16", "F32")
PLAIN = Integer(
    *(4, "u8", "unsigned", Spread(1, 2), FLOAT, NO_ZERO, "sequential", "float32")
)


def floats(values: Any, dtype: str = "F32") -> Stored:  # noqa: ANN401 - numbers in lists
    return from_float32(np.array(values, np.float32), dtype)


def octets(values: Any) -> Stored:  # noqa: ANN401 - likewise
    return Stored("U8", np.array(values, np.uint8))


def rebuilt(scheme: Integer, parts: Parts, codes: Any = ((1, 2, 3, 15),)) -> list[Any]:  # noqa: ANN401 - likewise
    array = np.array(codes, np.uint8)
    words = octets(array.reshape(scheme.spread.table(array.shape)))
    return list(dequantize(scheme, {"codes": words, **parts}, array.shape).tolist())


SCALES = {"scales": floats([[2, 0.5]])}


@pytest.mark.parametrize(
    ("kind", "zeros", "expected"),
    [
        ("none", None, [2, 4, 1.5, 7.5]),
        ("middle", None, [-14, -12, -2.5, 3.5]),
        ("code", [[1, 3]], [0, 2, 0, 6]),
        ("shift", [[1, 3]], [1, 3, -1.5, 4.5]),
        ("bias", [[1, 3]], [3, 5, 4.5, 10.5]),
    ],
)
def test_what_a_zero_is(
    kind: Literal["none", "middle", "code", "shift", "bias"],
    zeros: list[list[int]] | None,
    expected: list[float],
) -> None:
    dtypes = () if zeros is None else FLOAT
    parts = SCALES if zeros is None else {**SCALES, "zeros": floats(zeros)}
    scheme = replace(PLAIN, zero=plain_zero(kind, dtypes))
    assert rebuilt(scheme, parts) == [expected]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("unsigned", [2, 4, 1.5, 7.5]),
        ("offset", [-14, -12, -2.5, 3.5]),
        ("signed", [2, 4, 1.5, -0.5]),
    ],
)
def test_what_a_code_is(
    code: Literal["unsigned", "offset", "signed"], expected: list[float]
) -> None:
    assert rebuilt(replace(PLAIN, code=code), SCALES) == [expected]


@pytest.mark.parametrize(
    ("code", "stored", "plus", "signed", "zero"),
    [
        *(("unsigned", 7, 1, False, 8), ("unsigned", 15, 1, False, 0)),
        *(("unsigned", 7, 0, False, 7), ("signed", 15, 0, False, 15)),
        *(("offset", 8, 0, True, 0), ("offset", 15, 1, True, -8)),
        *(("offset", 0, 0, True, -8), ("signed", 15, 0, True, -1)),
        *(("signed", 7, 0, True, 7), ("signed", 8, 0, True, -8)),
    ],
)
def test_packed_zeros(
    code: Literal["unsigned", "offset", "signed"],
    stored: int,
    plus: int,
    *,
    signed: bool,
    zero: int,
) -> None:
    how = Zero("code", ("I32",), "i32-lsb", plus, signed)
    scheme = replace(PLAIN, code=code, spread=Spread(1, 0), zero=how)
    words = Stored("I32", pack("i32-lsb", np.array([[stored]], np.uint8), 4))
    scales = {"scales": floats([[1]])}
    (plain,) = rebuilt(replace(scheme, zero=NO_ZERO), scales)
    (made,) = rebuilt(scheme, {**scales, "zeros": words})
    assert made == [value - zero for value in plain]


def test_products_are_rounded_to_the_scales_dtype_if_so_said() -> None:
    parts = {"scales": floats([[0.33349609375, 1]], "F16")}
    narrow = replace(PLAIN, arithmetic="scale")
    assert rebuilt(PLAIN, parts, [[3, 3, 3, 3]]) == [[1.00048828125] * 2 + [3, 3]]
    assert rebuilt(narrow, parts, [[3, 3, 3, 3]]) == [[1, 1, 3, 3]]
    # So are differences with a zero that is no integer.
    zero = plain_zero("code", FLOAT)
    parts["zeros"] = floats([[1 / 1024, 1 / 4096]], "F16")
    wide = rebuilt(replace(PLAIN, zero=zero), parts, [[0, 0, 15, 15]])
    assert wide[0][2] == 15 - 1 / 4096
    assert rebuilt(replace(narrow, zero=zero), parts, [[0, 0, 15, 15]])[0][2] == 15


def test_listed_groups() -> None:
    parts = {**SCALES, "g_idx": Stored("I32", np.array([1, 0, 1, 0], np.int32))}
    listed = replace(PLAIN, order="listed")
    assert rebuilt(listed, parts) == [[0.5, 4, 1.5, 30]]
    maybe = replace(PLAIN, order="may-be-listed")
    assert rebuilt(maybe, parts) == rebuilt(listed, parts)
    assert rebuilt(maybe, SCALES) == rebuilt(PLAIN, SCALES)
    with pytest.raises(BackendError, match="needs a tensor of g_idx"):
        rebuilt(listed, SCALES)


@pytest.mark.parametrize("groups", [[0, 0, 1, 2], [-1, 0, 0, 0], [2**31 - 1] * 4])
def test_groups_that_are_none(groups: list[int]) -> None:
    parts = {**SCALES, "g_idx": Stored("I32", np.array(groups, np.int32))}
    with pytest.raises(BackendError, match="g_idx has groups"):
        rebuilt(replace(PLAIN, order="listed"), parts)


def test_groups_of_flattened_blocks() -> None:
    flat = replace(PLAIN, spread=Spread(0, 2, "flat-column"), order="may-be-listed")
    scales = {"scales": floats([[2], [0.5]])}
    assert rebuilt(flat, scales, [[1, 2, 3, 15]]) == [[2, 4, 1.5, 7.5]]
    groups = {"g_idx": Stored("I32", np.zeros(4, np.int32))}
    with pytest.raises(BackendError, match="no groups of inputs"):
        rebuilt(flat, {**scales, **groups})


def test_zeros_that_float32_does_not_hold() -> None:
    scheme = replace(PLAIN, zero=plain_zero("code", ("I32", "U64")))
    for dtype, value in (("I32", -(2**24) - 1), ("U64", 2**63)):
        zeros = Stored(dtype, np.array([[0, value]], storage_dtype(dtype)))
        with pytest.raises(BackendError, match="beyond 16777216"):
            rebuilt(scheme, {**SCALES, "zeros": zeros})
    exact = Stored("I32", np.array([[0, 2**24]], np.int32))
    made = rebuilt(scheme, {**SCALES, "zeros": exact})
    assert made[0][2] == (3 - 2**24) / 2


def test_what_has_no_bearing_may_be_absent_and_not_wrong() -> None:
    scheme = replace(PLAIN, extras=(Extra("weight_shape", ("I64",), (2,)),))
    assert rebuilt(scheme, SCALES) == rebuilt(PLAIN, SCALES)
    wrong = Stored("I64", np.zeros(3, np.int64))
    with pytest.raises(BackendError, match="weight_shape are I64"):
        rebuilt(scheme, {**SCALES, "weight_shape": wrong})


@pytest.mark.parametrize("direction", ["multiply", "divide"])
def test_second_scales(direction: Literal["multiply", "divide"]) -> None:
    scheme = Scaled(
        *("i8", "i8", Spread(1, 2), FLOAT, "float", direction, "float32"),
        factor=0.5,
    )
    codes = np.array([[[1, -2]], [[3, 4]]], np.int8)
    parts = {
        "codes": Stored("I8", codes),
        "scales": floats([[[8]], [[16]]]),
        "global_scale": floats([2, 4]),
    }
    made = dequantize(scheme, parts, codes.shape)
    factors = (8, 32) if direction == "multiply" else (2, 2)
    np.testing.assert_array_equal(made, codes * np.reshape(factors, (2, 1, 1)))


def test_division_by_nothing_is_no_number() -> None:
    row = next(each for each in FORMATS if each.file == "ct_NVFP4")
    parts = parts_of(row) | {"global_scale": floats([0])}
    made = dequantize(row.scheme, parts, row.shape)
    assert not np.isfinite(made).any()


def test_scales_that_are_no_bytes() -> None:
    scheme = Scaled("i8", "i8", Spread(1, 0), FLOAT, "e8m0", "none", "float32")
    parts = {"codes": Stored("I8", np.zeros((1, 2), np.int8)), "scales": floats([[1]])}
    with pytest.raises(BackendError, match="no e8m0 bytes"):
        dequantize(scheme, parts, (1, 2))


def test_second_scales_that_fit_no_rows() -> None:
    scheme = replace(TORCHAO_NVFP4, global_shape=(3,), spread=Spread(1, 16))
    parts = {
        "codes": octets(np.zeros((2, 8))),
        "scales": Stored("F8_E4M3", np.zeros((2, 1), np.uint8)),
        "global_scale": floats([1, 2, 3]),
    }
    with pytest.raises(BackendError, match="3 second scales for 2 rows"):
        dequantize(scheme, parts, (2, 16))


@pytest.mark.parametrize("shape", [(4, 4), (0, 4), (-1, 4), ()])
def test_opaque_values_are_not_decoded(shape: tuple[int, ...]) -> None:
    scheme = Opaque(
        "exl3", 3, 0, (OpaquePart("codes", ("I16",), (Dim("N"), Dim("K"))),)
    )
    with pytest.raises(BackendError, match=r"values of exl3.* are not decoded"):
        dequantize(scheme, {"codes": Stored("I16", np.zeros((4, 4), np.int16))}, shape)


def parts_of(row: Format) -> Parts:
    vectors = golden(row.file)
    return {role: vectors[key] for role, key in row.parts.items()}


ONE_OF_EACH = {
    name: row
    for row in FORMATS
    for name in [f"{row.scheme.kind} {row.scheme.pack} {row.scheme.bits}"]
}


@pytest.mark.parametrize("row", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
@pytest.mark.parametrize(
    "what", ["absent", "dtype", "longer", "shorter", "rank", "scalar", "empty"]
)
def test_every_part_is_checked(row: Format, what: str) -> None:
    good = parts_of(row)
    for role, part in good.items():
        array = part.array
        changed: dict[str, Stored | None] = {
            "absent": None,
            "dtype": Stored("C64", np.zeros(part.shape, np.complex64)),
            "longer": Stored(part.dtype, np.concatenate([array.reshape(-1)] * 2)),
            "shorter": Stored(part.dtype, array.reshape(-1)[1:]),
            "rank": Stored(part.dtype, array[None]),
            "scalar": Stored(part.dtype, array.reshape(-1)[0].reshape(())),
            "empty": Stored(part.dtype, array.reshape(-1)[:0]),
        }
        other = changed[what]
        parts = {key: value for key, value in good.items() if key != role}
        parts |= {role: other} if other is not None else {}
        if other is not None and other.shape == part.shape and what != "dtype":
            continue
        if other is None and role in row.scheme.optional:
            dequantize(row.scheme, parts, row.shape)
            continue
        with pytest.raises((BackendError, PackingError)):
            raise AssertionError(role, dequantize(row.scheme, parts, row.shape).shape)


@pytest.mark.parametrize("row", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
@pytest.mark.parametrize(
    "shape",
    [(), (64,), (-1, 64), (64, -1), (3, 5, 7), (1 << 62, 64), (64, 1 << 62), (5, 0)],
)
def test_shapes_of_other_weights(row: Format, shape: tuple[int, ...]) -> None:
    with pytest.raises((BackendError, PackingError)):
        raise AssertionError(dequantize(row.scheme, parts_of(row), shape).shape)


def empty_parts(preset: str, shape: tuple[int, ...]) -> Parts:
    return {
        role: Stored(
            dtypes[0],
            np.broadcast_to(np.zeros((), storage_dtype(dtypes[0])), size or ()),
        )
        for role, dtypes, size in CT[preset].parts(shape)
    }


@pytest.mark.parametrize(
    ("preset", "shape"),
    [
        *(("W8A8", (0, 64)), ("FP8_DYNAMIC", (0, 1 << 40)), ("MXFP8A16", (64, 0))),
        *(("MXFP8A16", (1 << 40, 0)), ("MXFP8A16", (2, 0, 1 << 40))),
    ],
)
def test_weights_of_nothing(preset: str, shape: tuple[int, ...]) -> None:
    made = dequantize(CT[preset], empty_parts(preset, shape), shape)
    assert made.shape == shape


def test_weights_of_nothing_that_no_array_has() -> None:
    shape = (1 << 61, 0)
    parts = empty_parts("MXFP8A16", shape)
    with pytest.raises(BackendError, match="no array has the shape"):
        dequantize(CT["MXFP8A16"], parts, shape)


BNB = next(row for row in FORMATS if row.file == "bnb_nf4_double_bfloat16")
STATE: dict[str, Any] = json.loads(parts_of(BNB)["quant_state"].array.tobytes())


def with_state(text: bytes) -> Parts:
    return parts_of(BNB) | {"quant_state": octets(list(text))}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("quant_type", "fp4"), ("blocksize", 128), ("blocksize", 64.0)),
        *(("blocksize", True), ("shape", [192, 48]), ("shape", None)),
        *(("shape", [48.0, 192]), ("dtype", "float64"), ("dtype", ["float32"])),
        *(("nested_blocksize", 64), ("nested_dtype", "float16")),
        *(("nested_offset", None), ("nested_offset", True), ("nested_offset", "1")),
        *(("nested_offset", float("nan")), ("nested_offset", float("inf"))),
    ],
)
def test_quant_state_that_says_something_else(key: str, value: object) -> None:
    text = json.dumps({**STATE, key: value}).encode()
    with pytest.raises(BackendError, match=f"quant_state: {key}"):
        dequantize(BNB.scheme, with_state(text), BNB.shape)


@pytest.mark.parametrize("key", STATE)
def test_quant_state_without_a_key(key: str) -> None:
    text = json.dumps({k: v for k, v in STATE.items() if k != key}).encode()
    with pytest.raises(BackendError, match="quant_state"):
        dequantize(BNB.scheme, with_state(text), BNB.shape)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"shape": 1, "shape": 1}'),
        *(b"[" * 4096, b'{"a":' * 800, b" " * 4097, b"1" * 4096, b'{"a": 1}{}'),
    ],
)
def test_quant_state_that_is_no_document(text: bytes) -> None:
    with pytest.raises(BackendError, match="quant_state"):
        dequantize(BNB.scheme, with_state(text), BNB.shape)


def test_quant_state_with_huge_offset() -> None:
    text = json.dumps(STATE).replace(str(STATE["nested_offset"]), "1e999").encode()
    with pytest.raises(BackendError, match="no finite number"):
        dequantize(BNB.scheme, with_state(text), BNB.shape)
    text = json.dumps({**STATE, "nested_offset": 10**400}).encode()
    with pytest.raises(BackendError, match="no finite number"):
        dequantize(BNB.scheme, with_state(text), BNB.shape)
    text = json.dumps({**STATE, "nested_offset": 1e300}).encode()
    with pytest.raises(BackendError, match="no finite number"):
        dequantize(BNB.scheme, with_state(text), BNB.shape)


def test_quant_state_of_another_nesting() -> None:
    plain = Codebook("nf4", 64, 0, "u8-flat-high")
    row = next(each for each in FORMATS if each.file == "bnb_nf4_bfloat16")
    said = json.loads(parts_of(row)["quant_state"].array.tobytes())
    text = json.dumps({**said, "nested_offset": 1.0}).encode()
    with pytest.raises(BackendError, match="goes with a nested absmax"):
        dequantize(
            plain, parts_of(row) | {"quant_state": octets(list(text))}, row.shape
        )


def test_another_table_is_refused() -> None:
    table = parts_of(BNB)["quant_map"].array.copy()
    table[3] = np.nextafter(table[3], np.float32(0))
    with pytest.raises(BackendError, match="not the table of nf4"):
        dequantize(BNB.scheme, parts_of(BNB) | {"quant_map": floats(table)}, BNB.shape)
