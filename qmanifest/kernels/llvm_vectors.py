"""Vectors of 16 floats in LLVM IR: what the kernels of products are built from.

LLVM does not vectorise loops that mix packed codes and floats well, so these are
written out: `<16 x float>` is one AVX-512 register, two of AVX2, four of NEON. Each
function emits instructions at the place of a builder and gives their value.

The weights are rebuilt as `qmanifest.backends.reference` rebuilds them, bit for bit:
the product and the sum are each rounded to the dtype of the scales.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from llvmlite import ir

from qmanifest.kernels.coding import (
    CHUNK,
    FLOAT_BYTES,
    LANES,
    STREAMED,
    Coding,
)

Builder: TypeAlias = Any
Value: TypeAlias = Any
"""llvmlite has no types for type checkers."""

HALF: Final = 16

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F32, F16 = ir.FloatType(), ir.HalfType()
F32S: Final = ir.VectorType(F32, LANES)
I32S: Final = ir.VectorType(I32, LANES)
_I16S: Final = ir.VectorType(I16, LANES)
I16PAIRS: Final = ir.VectorType(I16, CHUNK)
_F16S: Final = ir.VectorType(F16, LANES)


def constants(numbers: list[int]) -> Value:
    """Make a vector of int32 constants."""
    return ir.Constant(ir.VectorType(I32, len(numbers)), numbers)


def splat(b: Builder, scalar: Value) -> Value:
    """Fill a vector with one number."""
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    first = b.insert_element(undefined, scalar, I32(0))
    return b.shuffle_vector(first, undefined, constants([0] * LANES))


def load(b: Builder, address: Value, kind: Value) -> Value:
    """Load a value from anywhere: nothing that is stored need be aligned."""
    return b.load(b.inttoptr(address, kind.as_pointer()), align=1)


def store(b: Builder, value: Value, address: Value) -> None:
    """Store a value anywhere."""
    b.store(value, b.inttoptr(address, value.type.as_pointer()), align=1)


def store_past_cache(b: Builder, value: Value, address: Value) -> None:
    """Store a vector in parts of `STREAMED` bytes, to an address of whole parts."""
    lanes = STREAMED // (FLOAT_BYTES if value.type.element == F32 else 2)
    hint = b.module.add_metadata([I32(1)])
    for first in range(0, value.type.count, lanes):
        some = constants([first + lane for lane in range(lanes)])
        part = b.shuffle_vector(value, value, some)
        where = at(b, address, first // lanes * STREAMED)
        place = b.inttoptr(where, part.type.as_pointer())
        b.store(part, place, align=STREAMED).set_metadata("nontemporal", hint)


def prefetch(b: Builder, address: Value) -> None:
    """Ask for what lies around an address, where nothing need be."""
    kind = ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I32, I32, I32])
    ask = b.module.declare_intrinsic("llvm.prefetch", [I8.as_pointer()], kind)
    reading, keep_near, data = I32(0), I32(3), I32(1)
    b.call(ask, [b.inttoptr(address, I8.as_pointer()), reading, keep_near, data])


def at(b: Builder, address: Value, offset: int) -> Value:
    """Move an address by a constant number of bytes."""
    return b.add(address, I64(offset))


def strided(b: Builder, address: Value, index: Value, stride: int) -> Value:
    """Find element `index` of an array."""
    return b.add(address, b.mul(index, I64(stride)))


def scale_at(b: Builder, address: Value, scale: str) -> Value:
    """Load a scale or a bias: a vector of float16 for `F16`, of float32 otherwise."""
    if scale == "F32":
        return splat(b, load(b, address, F32))
    if scale == "F16":
        return splat(b, load(b, address, F16))
    high = b.shl(b.zext(load(b, address, I16), I32), I32(HALF))
    return splat(b, b.bitcast(high, F32))


def _round_bf16(b: Builder, x: Value) -> Value:
    """Round float32 to the nearest that bfloat16 has, ties to even.

    NaNs stay NaNs: those that come of bfloat16 numbers have no low bits to carry.
    """
    bits = b.bitcast(x, I32S)
    odd = b.and_(b.lshr(bits, constants([HALF] * LANES)), constants([1] * LANES))
    up = b.add(b.add(bits, odd), constants([0x7FFF] * LANES))
    return b.bitcast(b.and_(up, constants([0xFFFF0000] * LANES)), F32S)


def rebuilt(b: Builder, codes: Value, scale: Value, bias: Value, dtype: str) -> Value:
    """Rebuild 16 weights from their codes, int32: float32 that `dtype` can hold."""
    if dtype == "F16":
        # AVX512-FP16 does this as it stands; LLVM widens and rounds for other CPUs.
        halves = b.uitofp(codes, _F16S)
        return b.fpext(b.fadd(b.fmul(halves, scale), bias), F32S)
    product = b.fmul(b.uitofp(codes, F32S), scale)
    if dtype == "F32":
        return b.fadd(product, bias)
    return _round_bf16(b, b.fadd(_round_bf16(b, product), bias))


class Group:
    """The weights of one group: its scale and bias, or all that they can give."""

    def __init__(
        self, b: Builder, coding: Coding, scale_address: Value, bias_address: Value
    ) -> None:
        self.coding = coding
        self.scale = scale_at(b, scale_address, coding.scale)
        self.bias = scale_at(b, bias_address, coding.scale)
        if coding.lookup:
            # A code has one of 16 values: rebuild those, not every weight.
            mask = (1 << coding.bits) - 1
            every = constants([lane & mask for lane in range(LANES)])
            self.table = rebuilt(b, every, self.scale, self.bias, coding.scale)

    def weights(self, b: Builder, codes: Value) -> Value:
        """Give the weights of 16 codes."""
        if not self.coding.lookup:
            return rebuilt(b, codes, self.scale, self.bias, self.coding.scale)
        permute = b.module.declare_intrinsic(
            "llvm.x86.avx512.permvar.sf.512", (), ir.FunctionType(F32S, [F32S, I32S])
        )
        return b.call(permute, [self.table, codes])

    def halves(self, b: Builder) -> Value:
        """Give all that a lookup finds, in the scales' 16 bits, as 32 int16.

        The index has five bits, of which a code's are the lowest: all stand twice.
        """
        table = b.bitcast(narrowed(b, self.table, self.coding.scale), _I16S)
        return b.shuffle_vector(table, table, constants(list(range(LANES)) * 2))


def halves_of(b: Builder, table: Value, indices: Value) -> Value:
    """Look up 32 int16 in a table of as many."""
    name = "llvm.x86.avx512.permvar.hi.512"
    kind = ir.FunctionType(I16PAIRS, [I16PAIRS, I16PAIRS])
    return b.call(b.module.declare_intrinsic(name, (), kind), [table, indices])


def fma(b: Builder, one: Value, two: Value, three: Value) -> Value:
    """Multiply and add with one rounding."""
    kind = ir.FunctionType(F32S, [F32S] * 3)
    name = f"llvm.fma.v{LANES}f32"
    return b.call(b.module.declare_intrinsic(name, (), kind), [one, two, three])


def total(b: Builder, lanes: Value) -> Value:
    """Add the 16 lanes, as a tree."""
    kind = ir.FunctionType(F32, [F32, F32S])
    name = f"llvm.vector.reduce.fadd.v{LANES}f32"
    function = b.module.declare_intrinsic(name, (), kind)
    return b.call(function, [F32(0.0), lanes], fastmath=("reassoc",))


def in_order(b: Builder, even: Value, odd: Value) -> tuple[Value, Value]:
    """Interleave two vectors."""
    turns = [lane // 2 + LANES * (lane % 2) for lane in range(CHUNK)]
    return (
        b.shuffle_vector(even, odd, constants(turns[:LANES])),
        b.shuffle_vector(even, odd, constants(turns[LANES:])),
    )


def narrowed(b: Builder, weights: Value, dtype: str) -> Value:
    """Write 16 float32 in a dtype that holds them exactly."""
    if dtype == "F32":
        return weights
    if dtype == "F16":
        return b.fptrunc(weights, _F16S)
    bits = b.bitcast(weights, I32S)
    return b.trunc(b.lshr(bits, constants([HALF] * LANES)), _I16S)
