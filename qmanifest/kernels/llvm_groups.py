# ruff: noqa: ARG001 - a numba intrinsic is given the types of all its arguments
"""What is done to one group of values, as numba functions on sixteen lanes.

From plain loops LLVM makes good code for groups of 64 and 128, but it unrolls a loop
over 32 values completely and then finds no vector in it, and it never vectorises the
least and the largest float. Here the vectors are written out, so that every group whose
size is a multiple of sixteen is worked on at full width.

An array's numpy dtype says what it holds: `float32` is F32, `uint16` BF16 and `int16`
F16, so that numba compiles one kernel for each.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils

from qmanifest.kernels.jit import emitted
from qmanifest.kernels.llvm_floats import (
    FLOATS,
    I32,
    INTEGERS,
    LANES,
    OCTETS,
    Builder,
    Value,
    load,
    load_bits,
    rounded,
    splat,
    spread,
    store,
    store_float,
)

Context: TypeAlias = Any
Kind: TypeAlias = Any
"""numba's code generator has no types."""

_HOLDS: Final = {types.float32: "F32", types.uint16: "BF16", types.int16: "F16"}
_PAIR: Final[Kind] = types.UniTuple(types.float32, 2)  # type: ignore[no-untyped-call]  # numba: no types here
_TOP: Final = 0x7FFFFFFF


@emitted
def extremes(_: Context, values: Kind, start: Kind, count: Kind) -> Value:
    """Find the least and the largest of `count` stored floats, as float32.

    They are compared as integers of the same order. A NaN is beyond infinity, so that
    one is found here too.
    """
    dtype = _HOLDS[values.dtype]

    def emit(
        context: Context, builder: Builder, signature: Kind, given: Value
    ) -> Value:
        data = _data(context, builder, signature, given, 0)
        low = _place(builder, splat(INTEGERS, _TOP))
        high = _place(builder, splat(INTEGERS, ~_TOP))
        with _vectors(builder, given[1], given[2]) as (index, _):
            bits = load_bits(builder, data, index, dtype)
            ordered = _ordered(
                builder, bits, splat(INTEGERS, 31), splat(INTEGERS, _TOP)
            )
            for place, order in ((low, "<"), (high, ">")):
                best = builder.load(place)
                better = builder.icmp_signed(order, ordered, best)
                builder.store(builder.select(better, ordered, best), place)
        found = [
            _reduced(builder, name, builder.load(place))
            for name, place in (("smin", low), ("smax", high))
        ]
        return context.make_tuple(builder, signature.return_type, found)

    return _PAIR(values, types.intp, types.intp), emit


@emitted
def encode(  # noqa: PLR0917 - compiled code takes arguments by position
    _: Context,
    values: Kind,
    start: Kind,
    count: Kind,
    numbers: Kind,
    codes: Kind,
    at: Kind,
) -> Value:
    """Write the codes of `count` stored floats, `numbers` being scale, bias and top.

    A code is the value less the bias, divided by the scale, rounded half to even and
    held between 0 and `top`; a NaN gives 0.
    """
    dtype = _HOLDS[values.dtype]

    def emit(
        context: Context, builder: Builder, signature: Kind, given: Value
    ) -> Value:
        data = _data(context, builder, signature, given, 0)
        target = _data(context, builder, signature, given, 4)
        scale, bias, top = (
            spread(builder, builder.extract_value(given[3], each)) for each in range(3)
        )
        zero = splat(FLOATS, 0.0)
        with _vectors(builder, given[1], given[2]) as (index, _):
            bits = load_bits(builder, data, index, dtype)
            value = builder.fsub(builder.bitcast(bits, FLOATS), bias)
            code = _rint(builder, builder.fdiv(value, scale))
            # Ordered comparisons: NaN is not above zero.
            code = builder.select(builder.fcmp_ordered(">", code, zero), code, zero)
            code = builder.select(builder.fcmp_ordered("<", code, top), code, top)
            octets = builder.trunc(builder.fptosi(code, INTEGERS), OCTETS)
            place = builder.add(builder.sub(index, given[1]), given[5])
            store(builder, octets, target, place)
        return context.get_dummy_value()

    sizes = (types.intp, types.intp)
    return types.void(values, *sizes, numbers, codes, types.intp), emit


@emitted
def narrow(_: Context, numbers: Kind, count: Kind, values: Kind) -> Value:
    """Round float32 to what `values` holds, sixteen at a time up to `count`."""
    dtype = _HOLDS[values.dtype]

    def emit(
        context: Context, builder: Builder, signature: Kind, given: Value
    ) -> Value:
        source = _data(context, builder, signature, given, 0)
        target = _data(context, builder, signature, given, 2)
        none = ir.Constant(given[1].type, 0)
        with _vectors(builder, none, given[1]) as (index, _):
            number = load(builder, source, index, FLOATS)
            store_float(builder, rounded(builder, number, dtype), target, index, dtype)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, values), emit


@emitted
def load_lane(_: Context, octets: Kind, at: Kind) -> Value:
    """Read eight bytes as one uint64, wherever they begin."""

    def emit(
        context: Context, builder: Builder, signature: Kind, given: Value
    ) -> Value:
        data = _data(context, builder, signature, given, 0)
        return load(builder, data, given[1], ir.IntType(64))

    return types.uint64(octets, types.intp), emit


@emitted
def store_lane(_: Context, octets: Kind, at: Kind, lane: Kind) -> Value:
    """Write one uint64 as eight bytes, wherever they begin."""

    def emit(
        context: Context, builder: Builder, signature: Kind, given: Value
    ) -> Value:
        store(builder, given[2], _data(context, builder, signature, given, 0), given[1])
        return context.get_dummy_value()

    return types.void(octets, types.intp, types.uint64), emit


def _data(
    context: Context, builder: Builder, signature: Kind, given: Value, which: int
) -> Value:
    """Find where the elements of an array argument begin."""
    array = context.make_array(signature.args[which])
    return array(context, builder, given[which]).data


def _vectors(builder: Builder, start: Value, count: Value) -> Any:  # noqa: ANN401 - numba's loops have no types
    """Loop over `count` elements from `start` on, sixteen at a time."""
    step = ir.Constant(start.type, LANES)
    stop = builder.add(start, count)
    return cgutils.for_range_slice(builder, start, stop, step, intp=start.type)


def _place(builder: Builder, first: Value) -> Value:
    """Make a variable; LLVM keeps it in a register."""
    declare: Any = cgutils.alloca_once_value
    return declare(builder, first)


def _ordered(builder: Builder, bits: Value, sign: Value, body: Value) -> Value:
    """Turn the bits of float32 into integers of the same order, or back again."""
    return builder.xor(bits, builder.and_(builder.ashr(bits, sign), body))


def _reduced(builder: Builder, name: str, vector: Value) -> Value:
    """Reduce sixteen ordered integers to one, as the float32 that it stands for."""
    kind = ir.FunctionType(I32, [INTEGERS])
    name = f"llvm.vector.reduce.{name}.v{LANES}i32"
    best = _call(builder, name, kind, vector)
    bits = _ordered(builder, best, ir.Constant(I32, 31), ir.Constant(I32, _TOP))
    return builder.bitcast(bits, ir.FloatType())


def _rint(builder: Builder, value: Value) -> Value:
    """Round sixteen float32 to whole numbers, half to even."""
    kind = ir.FunctionType(FLOATS, [FLOATS])
    name = f"llvm.rint.v{LANES}f32"
    return _call(builder, name, kind, value)


def _call(builder: Builder, name: str, kind: Kind, vector: Value) -> Value:
    """Call one of LLVM's own functions."""
    declare: Any = cgutils.get_or_insert_function
    return builder.call(declare(builder.module, kind, name), [vector])
