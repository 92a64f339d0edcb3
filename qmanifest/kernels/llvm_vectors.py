"""Vectors of 16 floats in LLVM IR: what the kernels of products are built from.

LLVM does not vectorise loops that mix packed codes and floats well, so these are
written out: `<16 x float>` is one AVX-512 register, two of AVX2, four of NEON. Each
function emits instructions at the place of a builder and gives their value.

The weights are rebuilt as `qmanifest.backends.reference` rebuilds them, bit for bit:
the product and the sum are each rounded to the dtype of the scales.
"""

from __future__ import annotations

import platform
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from llvmlite import binding, ir
from numba import config

Builder: TypeAlias = Any
Value: TypeAlias = Any
"""llvmlite has no types for type checkers."""

LANES: Final = 16
CHUNK: Final = 2 * LANES
"""Codes that are unpacked at a time."""
FLOAT_BYTES: Final = 4
_NIBBLE: Final = 4
_OCTET: Final = 8
_HALF: Final = 16

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F32, F16 = ir.FloatType(), ir.HalfType()
F32S: Final = ir.VectorType(F32, LANES)
_I32S: Final = ir.VectorType(I32, LANES)
_I16S: Final = ir.VectorType(I16, LANES)
_F16S: Final = ir.VectorType(F16, LANES)


class Coding(NamedTuple):
    """How a weight is stored, as far as its instructions differ."""

    bits: int
    """1 to 8."""
    group_size: int
    """A multiple of 32."""
    scale: str
    """Dtype of scales and biases: `F32`, `F16` or `BF16`."""
    lookup: bool
    """Whether a register of 16 weights is indexed by codes of up to 4 bits."""

    @property
    def chunk_bytes(self) -> int:
        """Bytes of 32 codes."""
        return CHUNK * self.bits // _OCTET

    @property
    def interleaved(self) -> bool:
        """Whether the codes of a chunk come as those of even and of odd place."""
        return self.bits == _NIBBLE

    @property
    def chunks(self) -> int:
        """Chunks of a group."""
        return self.group_size // CHUNK

    @property
    def scale_bytes(self) -> int:
        """Bytes of one scale."""
        return FLOAT_BYTES if self.scale == "F32" else 2


@cache
def _cpu_has(feature: str) -> bool:
    """Whether the CPU that numba compiles for has a feature, by LLVM's name."""
    name, features = (getattr(config, f"CPU_{part}") for part in ("NAME", "FEATURES"))
    if features is not None:
        return f"+{feature}" in str(features).split(",")
    if name not in (None, "host"):
        return False
    return bool(binding.get_host_cpu_features().get(feature))


def has_lookup() -> bool:
    """Whether the CPU can index a register of 16 floats: AVX-512 can."""
    return _cpu_has("avx512f")


def has_float16() -> bool:
    """Whether the CPU converts float16; LLVM would call what is not there."""
    return _cpu_has("f16c") or platform.machine().lower() in ("aarch64", "arm64")


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
    high = b.shl(b.zext(load(b, address, I16), I32), I32(_HALF))
    return splat(b, b.bitcast(high, F32))


def _round_bf16(b: Builder, x: Value) -> Value:
    """Round float32 to the nearest that bfloat16 has, ties to even.

    NaNs stay NaNs: those that come of bfloat16 numbers have no low bits to carry.
    """
    bits = b.bitcast(x, _I32S)
    odd = b.and_(b.lshr(bits, constants([_HALF] * LANES)), constants([1] * LANES))
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


def chunk_codes(b: Builder, address: Value, coding: Coding) -> tuple[Value, Value]:
    """Unpack 32 codes to int32.

    For 4 bits the first 16 are those of even place and the others those of odd place,
    which takes no shuffle; for other widths they stand in order. With a lookup, bits
    above the code's own are left in: indexing does not see them.
    """
    mask = constants([(1 << coding.bits) - 1] * LANES)
    if coding.interleaved:
        octets = b.zext(load(b, address, ir.VectorType(I8, LANES)), _I32S)
        low = octets if coding.lookup else b.and_(octets, mask)
        return low, b.lshr(octets, constants([_NIBBLE] * LANES))
    half = at(b, address, coding.chunk_bytes // 2)
    return _in_order(b, address, coding, mask), _in_order(b, half, coding, mask)


def _in_order(b: Builder, address: Value, coding: Coding, mask: Value) -> Value:
    """Unpack 16 codes of any width: each from the two bytes that it may lie in."""
    bits, count = coding.bits, LANES * coding.bits // _OCTET
    octets = load(b, address, ir.VectorType(I8, count))
    if bits == _OCTET:
        return b.zext(octets, _I32S)
    firsts = [lane * bits // _OCTET for lane in range(LANES)]
    pairs = [min(byte + one, count - 1) for byte in firsts for one in (0, 1)]
    paired = b.shuffle_vector(octets, octets, constants(pairs))
    twos = b.bitcast(paired, _I16S)
    shifts = constants([lane * bits % _OCTET for lane in range(LANES)])
    return b.and_(b.lshr(b.zext(twos, _I32S), shifts), mask)


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
            "llvm.x86.avx512.permvar.sf.512", (), ir.FunctionType(F32S, [F32S, _I32S])
        )
        return b.call(permute, [self.table, codes])


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


def high_halves(b: Builder, weights: Value) -> Value:
    """Cut float32 that bfloat16 can hold down to it, as int16 of the same bits."""
    bits = b.bitcast(weights, _I32S)
    return b.trunc(b.lshr(bits, constants([_HALF] * LANES)), _I16S)
