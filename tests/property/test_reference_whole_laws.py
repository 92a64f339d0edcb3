"""Laws of the reference beyond rows of groups: weight by weight, and hostile parts."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.spreads import place

from qmanifest.backends.reference import dequantize
from qmanifest.dtypes import DTYPES, FLOAT
from qmanifest.errors import BackendError, PackingError
from qmanifest.packings import pack
from qmanifest.packings.arrays import Codes, Stored, from_float32, storage_dtype
from qmanifest.packings.arrays import to_float32 as wide
from qmanifest.schemes import Integer, Zero, plain_zero
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from support.spreads import Place

    from qmanifest.schemes.integers import Code, Order, Zeros

Parts = dict[str, Stored]
PACKS = ("u8", "i8", "i32-lsb", "i32-lsb-down", "i32-whole-stacked", "u8-split-low")
KINDS: tuple[Zeros, ...] = ("none", "middle", "code", "shift", "bias")
CODES: tuple[Code, ...] = ("unsigned", "offset", "signed")
ORDERS: tuple[Order, ...] = ("sequential", "may-be-listed")
DTYPES_OF_BYTES = [code for code, row in DTYPES.items() if row.bits >= 8]
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def spreads(draw: st.DrawFn, shape: tuple[int, int]) -> Spread:
    form = draw(st.sampled_from(["table", "transposed", "swizzled", "flat-column"]))
    if form == "flat-column":
        whole = math.prod(shape)
        sizes = [size for size in range(1, whole + 1) if whole % size == 0]
        return Spread(0, draw(st.sampled_from(sizes)), "flat-column")
    sides = draw(st.integers(0, 4)), draw(st.integers(0, 9))
    return Spread(*sides, "table" if form == "table" else "transposed")


@st.composite
def weights(draw: st.DrawFn) -> tuple[Integer, tuple[int, int], Parts, Codes]:
    """`(scheme, shape, parts, codes)`, the codes in the weight's own shape."""
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 12)))
    spread = draw(spreads(shape))
    bits = draw(st.sampled_from([2, 4]))
    kind = draw(st.sampled_from(KINDS))
    stored = kind in {"code", "shift", "bias"}
    packed = kind == "code" and draw(st.booleans())
    plus, signed = draw(st.integers(0, 1)), draw(st.booleans())
    zero = plain_zero(kind, FLOAT if stored else ())
    if packed and spread.form != "swizzled":
        zero = Zero("code", ("I32",), "i32-lsb", plus, signed)
    scheme = Integer(
        bits,
        draw(st.sampled_from(PACKS)),
        draw(st.sampled_from(CODES)),
        spread,
        FLOAT,
        zero,
        draw(st.sampled_from(ORDERS)),
        draw(st.sampled_from(["float32", "scale"])),
    )
    codes = draw(codes_of(shape, bits))
    table = codes.reshape(spread.table(shape))
    words = pack(scheme.pack, table, bits)
    dtype = {"u1": "U8", "i1": "I8", "i4": "I32"}[words.dtype.str[1:]]
    parts = {"codes": Stored(dtype, words)}
    numbers, scale = spread.shape(shape), draw(st.sampled_from(FLOAT))
    parts["scales"] = draw(numbers_of(numbers, scale))
    if zero.pack:
        fields = draw(codes_of(numbers, bits))
        parts["zeros"] = Stored("I32", pack(zero.pack, fields, bits))
        parts["fields"] = Stored("U8", fields)
    elif zero.dtypes:
        parts["zeros"] = draw(numbers_of(numbers, scale))
    count = math.ceil(shape[1] / (spread.columns or shape[1]))
    if scheme.order == "may-be-listed" and spread.form != "flat-column":
        groups = draw(
            hnp.arrays(np.int32, shape[1], elements=st.integers(0, count - 1))
        )
        parts["g_idx"] = Stored("I32", groups)
    return scheme, shape, parts, codes


def codes_of(shape: tuple[int, ...], bits: int) -> st.SearchStrategy[Codes]:
    return hnp.arrays(np.uint8, shape, elements=st.integers(0, (1 << bits) - 1))


def numbers_of(shape: tuple[int, ...], dtype: str) -> st.SearchStrategy[Stored]:
    values = st.floats(-8, 8, width=16)
    arrays = hnp.arrays(np.float32, shape, elements=values)
    return arrays.map(lambda array: from_float32(array, dtype))


def value_of(code: int, bits: int, kind: Code) -> int:
    middle = 1 << bits - 1
    return {
        "unsigned": code,
        "offset": code - middle,
        "signed": code - 2 * middle if code >= middle else code,
    }[kind]


def one_weight(
    scheme: Integer,
    shape: tuple[int, int],
    parts: Parts,
    code: int,
    at: Place,
) -> np.float32:
    """Rebuild one weight with numbers alone."""
    row, column = at
    if "g_idx" in parts:
        column = int(parts["g_idx"].array[column]) * (scheme.spread.columns or shape[1])
    numbers = wide(parts["scales"])
    where = place(numbers, scheme.spread, shape, (row, column))
    kind, bits = scheme.zero.kind, scheme.bits
    zero = 0.0 if kind == "none" else float(1 << bits - 1)
    if "fields" in parts:
        field = int(parts["fields"].array[where]) + scheme.zero.plus
        how: Code = scheme.code if scheme.zero.signed else "unsigned"
        zero = value_of(field % (1 << bits), bits, how)
    elif "zeros" in parts:
        zero = float(wide(parts["zeros"])[where])
    dtype = parts["scales"].dtype if scheme.arithmetic == "scale" else "F32"

    def to(value: np.float32) -> np.float32:
        narrow = from_float32(np.array([value], np.float32), dtype)
        return np.float32(wide(narrow)[0])

    value, scale = np.float32(value_of(code, bits, scheme.code)), numbers[where]
    if kind in {"shift", "bias"}:
        sign = -1 if kind == "shift" else 1
        return to(to(value * scale) + np.float32(sign * zero))
    return to(to(value - np.float32(zero)) * scale)


@slow
@given(made=weights())
def test_weight_by_weight(made: tuple[Integer, tuple[int, int], Parts, Codes]) -> None:
    scheme, shape, parts, codes = made
    stored = {role: part for role, part in parts.items() if role != "fields"}
    found = dequantize(scheme, stored, shape)
    for at in product(*map(range, shape)):
        assert found[at] == one_weight(scheme, shape, parts, int(codes[at]), at)


@st.composite
def hostile(draw: st.DrawFn) -> Stored:
    """Draw any small tensor."""
    dtype = draw(
        st.sampled_from([code for code, row in DTYPES.items() if row.bits >= 8])
    )
    shape = draw(st.lists(st.integers(0, 5), max_size=3).map(tuple))
    storage = storage_dtype(dtype)
    size = math.prod(shape) * storage.itemsize
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype == "BOOL":
        data = bytes(byte & 1 for byte in data)
    return Stored(dtype, np.frombuffer(data, storage).reshape(shape))


@slow
@given(
    made=weights(),
    changes=st.dictionaries(
        st.sampled_from(["codes", "scales", "zeros", "g_idx"]), hostile(), min_size=1
    ),
    shape=st.none() | st.lists(st.integers(-2, 9), max_size=3).map(tuple),
)
def test_hostile_parts_are_refused_or_read(
    made: tuple[Integer, tuple[int, int], Parts, Any],
    changes: Parts,
    shape: tuple[int, ...] | None,
) -> None:
    scheme, own, parts, _ = made
    wanted = own if shape is None else shape
    try:
        found = dequantize(scheme, {**parts, **changes}, wanted)
    except (BackendError, PackingError):
        return
    assert found.shape == wanted
    promised = {role: size for role, _, size in scheme.parts(wanted)}
    for role, part in changes.items():
        assert role not in promised or part.shape == promised[role]
