"""Packed codes, unpacked to vectors of integers."""

from __future__ import annotations

from llvmlite import ir

from qmanifest.kernels.coding import CHUNK, LANES, NIBBLE, OCTET, Coding
from qmanifest.kernels.llvm_vectors import (
    HALF,
    I8,
    I16,
    I16PAIRS,
    I32S,
    Builder,
    Value,
    at,
    constants,
    load,
)


def chunk_codes(b: Builder, address: Value, coding: Coding) -> tuple[Value, Value]:
    """Unpack 32 codes to int32.

    For 4 bits the first 16 are those of even place and the others those of odd place,
    which takes no shuffle; for other widths they stand in order. With a lookup, bits
    above the code's own are left in: indexing does not see them.
    """
    if coding.interleaved:
        octets = b.zext(load(b, address, ir.VectorType(I8, LANES)), I32S)
        low = octets if coding.lookup else b.and_(octets, _mask(coding))
        return low, b.lshr(octets, constants([NIBBLE] * LANES))
    half = at(b, address, coding.chunk_bytes // 2)
    return codes_in_order(b, address, coding), codes_in_order(b, half, coding)


def codes_in_order(b: Builder, address: Value, coding: Coding) -> Value:
    """Unpack 16 codes of any width to int32; with a lookup as `chunk_codes` does."""
    if coding.bits == OCTET:
        return b.zext(load(b, address, ir.VectorType(I8, LANES)), I32S)
    wide = b.zext(_near_octets(b, address, coding.bits, LANES), I32S)
    shifts = constants([lane * coding.bits % OCTET for lane in range(LANES)])
    codes = b.lshr(wide, shifts)
    return codes if coding.lookup else b.and_(codes, _mask(coding))


def chunk_indices(b: Builder, address: Value, coding: Coding) -> Value:
    """Unpack 32 codes of up to 4 bits to int16, in order, with others' bits above."""
    if coding.interleaved:
        octets = b.zext(load(b, address, ir.VectorType(I8, LANES)), I32S)
        above = b.shl(octets, constants([HALF - NIBBLE] * LANES))
        return b.bitcast(b.or_(octets, above), I16PAIRS)
    shifts = [lane * coding.bits % OCTET for lane in range(CHUNK)]
    near = _near_octets(b, address, coding.bits, CHUNK)
    return b.lshr(near, ir.Constant(I16PAIRS, shifts))


def _near_octets(b: Builder, address: Value, bits: int, lanes: int) -> Value:
    """Load, for each code, the two bytes that it may lie in as one int16."""
    count = lanes * bits // OCTET
    octets = load(b, address, ir.VectorType(I8, count))
    firsts = [lane * bits // OCTET for lane in range(lanes)]
    pairs = [min(byte + one, count - 1) for byte in firsts for one in (0, 1)]
    paired = b.shuffle_vector(octets, octets, constants(pairs))
    return b.bitcast(paired, ir.VectorType(I16, lanes))


def _mask(coding: Coding) -> Value:
    """Make the constant that leaves nothing but a code."""
    return constants([(1 << coding.bits) - 1] * LANES)
