"""Sixteen floats at a time in LLVM: widening the stored, rounding the computed.

Each function writes instructions for vectors of sixteen lanes, which LLVM lowers to
whatever the machine has. Only integer operations and one exact subtraction are used
for 16-bit floats, so that no machine needs conversions of its own.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from llvmlite import ir

Builder: TypeAlias = Any
Value: TypeAlias = Any
"""llvmlite has no types."""

LANES: Final = 16
I8, I16, I32 = ir.IntType(8), ir.IntType(16), ir.IntType(32)
OCTETS: Final = ir.VectorType(I8, LANES)
HALVES: Final = ir.VectorType(I16, LANES)
INTEGERS: Final = ir.VectorType(I32, LANES)
FLOATS: Final = ir.VectorType(ir.FloatType(), LANES)

_F16_SUBNORMALS_END: Final = 0x38800000
_F16_TOO_LARGE: Final = 0x47800000
_F32_INFINITE: Final = 0x7F800000


def splat(kind: ir.VectorType, number: float) -> ir.Constant:
    """Make a constant vector with one number in every lane."""
    return ir.Constant(kind, [number] * LANES)


def spread(builder: Builder, scalar: Value) -> Value:
    """Copy a scalar into every lane."""
    kind = ir.VectorType(scalar.type, LANES)
    first = builder.insert_element(
        ir.Constant(kind, ir.Undefined), scalar, ir.Constant(I32, 0)
    )
    zeros = ir.Constant(INTEGERS, [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)


def load(builder: Builder, base: Value, index: Value, kind: ir.Type) -> Value:
    """Read neighbours from element `index` on, however they are aligned."""
    place = builder.bitcast(builder.gep(base, [index]), kind.as_pointer())
    return builder.load(place, align=1)


def store(builder: Builder, value: Value, base: Value, index: Value) -> None:
    """Write neighbours from element `index` on, however they are aligned."""
    place = builder.bitcast(builder.gep(base, [index]), value.type.as_pointer())
    builder.store(value, place, align=1)


def load_bits(builder: Builder, base: Value, index: Value, dtype: str) -> Value:
    """Read sixteen stored floats as the bits of float32; exact."""
    kind = INTEGERS if dtype == "F32" else HALVES
    return _widen(builder, load(builder, base, index, kind), dtype)


def _widen(builder: Builder, stored: Value, dtype: str) -> Value:
    """Turn sixteen stored floats into the bits of float32."""
    if dtype == "F32":
        return stored
    wide = builder.zext(stored, INTEGERS)
    if dtype == "BF16":
        return builder.shl(wide, splat(INTEGERS, 16))
    return _widen_f16(builder, wide)


def _widen_f16(builder: Builder, stored: Value) -> Value:
    """Widen the bits of sixteen F16 numbers."""
    sign = builder.shl(
        builder.and_(stored, splat(INTEGERS, 0x8000)), splat(INTEGERS, 16)
    )
    body = builder.shl(
        builder.and_(stored, splat(INTEGERS, 0x7FFF)), splat(INTEGERS, 13)
    )
    # The exponents are biased by 15 in F16 and by 127 in F32; infinity stays on top.
    normal = builder.add(body, splat(INTEGERS, 112 << 23))
    infinite = builder.add(body, splat(INTEGERS, 224 << 23))
    # A subnormal is read as 2**-14 and more, from which 2**-14 is taken: exact, and
    # no subnormal float32 appears, on which processors are slow.
    raised = builder.bitcast(builder.add(body, splat(INTEGERS, 113 << 23)), FLOATS)
    tiny = builder.bitcast(builder.fsub(raised, splat(FLOATS, 2.0**-14)), INTEGERS)
    small = builder.icmp_unsigned("<", body, splat(INTEGERS, 1 << 23))
    top = builder.icmp_unsigned(">=", body, splat(INTEGERS, 31 << 23))
    wide = builder.select(small, tiny, builder.select(top, infinite, normal))
    return builder.or_(wide, sign)


def rounded(builder: Builder, value: Value, dtype: str) -> Value:
    """Round sixteen float32 to `dtype`, half to even; they stay float32.

    What is too large becomes infinite. None of them may be NaN.
    """
    if dtype == "F32":
        return value
    return (_to_bf16 if dtype == "BF16" else _to_f16)(builder, value)


def _half_to_even(builder: Builder, bits: Value, dropped: int) -> Value:
    """Round away the lowest `dropped` bits of sixteen float32."""
    odd = builder.and_(builder.lshr(bits, splat(INTEGERS, dropped)), splat(INTEGERS, 1))
    half = builder.add(odd, splat(INTEGERS, (1 << (dropped - 1)) - 1))
    keep = splat(INTEGERS, 0x100000000 - (1 << dropped))
    return builder.and_(builder.add(bits, half), keep)


def _to_bf16(builder: Builder, value: Value) -> Value:
    bits = _half_to_even(builder, builder.bitcast(value, INTEGERS), 16)
    return builder.bitcast(bits, FLOATS)


def _to_f16(builder: Builder, value: Value) -> Value:
    bits = builder.bitcast(value, INTEGERS)
    sign = builder.and_(bits, splat(INTEGERS, 0x80000000))
    body = builder.and_(bits, splat(INTEGERS, 0x7FFFFFFF))
    rounded = _half_to_even(builder, body, 13)
    large = builder.icmp_unsigned(">=", rounded, splat(INTEGERS, _F16_TOO_LARGE))
    rounded = builder.select(large, splat(INTEGERS, _F32_INFINITE), rounded)
    # Next to 0.5 float32 has steps of 2**-24, as F16 has below 2**-14.
    half = splat(FLOATS, 0.5)
    lifted = builder.fadd(builder.bitcast(body, FLOATS), half)
    tiny = builder.bitcast(builder.fsub(lifted, half), INTEGERS)
    small = builder.icmp_unsigned("<", body, splat(INTEGERS, _F16_SUBNORMALS_END))
    return builder.bitcast(
        builder.or_(builder.select(small, tiny, rounded), sign), FLOATS
    )


def store_float(
    builder: Builder, value: Value, base: Value, index: Value, dtype: str
) -> None:
    """Write sixteen float32 that are already rounded to `dtype`."""
    if dtype == "F32":
        store(builder, value, base, index)
        return
    bits = builder.bitcast(value, INTEGERS)
    if dtype == "BF16":
        upper = builder.lshr(bits, splat(INTEGERS, 16))
    else:
        upper = _narrow_f16(builder, bits)
    store(builder, builder.trunc(upper, HALVES), base, index)


def _narrow_f16(builder: Builder, bits: Value) -> Value:
    """Write sixteen float32, each an F16 number, with the bits of F16."""
    sign = builder.lshr(
        builder.and_(bits, splat(INTEGERS, 0x80000000)), splat(INTEGERS, 16)
    )
    body = builder.and_(bits, splat(INTEGERS, 0x7FFFFFFF))
    normal = builder.lshr(
        builder.sub(body, splat(INTEGERS, 112 << 23)), splat(INTEGERS, 13)
    )
    steps = builder.fmul(builder.bitcast(body, FLOATS), splat(FLOATS, 2.0**24))
    # Infinity has no integer, so that only what is small is ever converted.
    small = builder.icmp_unsigned("<", body, splat(INTEGERS, _F16_SUBNORMALS_END))
    counted = builder.fptosi(builder.select(small, steps, splat(FLOATS, 0.0)), INTEGERS)
    infinite = builder.icmp_unsigned(">=", body, splat(INTEGERS, _F32_INFINITE))
    large = builder.select(infinite, splat(INTEGERS, 0x7C00), normal)
    return builder.or_(builder.select(small, counted, large), sign)
