"""Integer codes with a scale and a zero per block: `w = scale * (code - zero)`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from qmanifest.backends.reference.rounding import rounded
from qmanifest.errors import BackendError
from qmanifest.packings import unpack
from qmanifest.packings.arrays import to_float32
from qmanifest.packings.spreading import blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from qmanifest.packings.arrays import Codes, Float32, Stored
    from qmanifest.schemes import Integer
    from qmanifest.tensors import Shape

_EXACT: Final = 1 << 24
"""Integers up to here are exact in float32."""


def integer_decoder(
    scheme: Integer, parts: Mapping[str, Stored], shape: Shape
) -> Callable[[slice], Float32]:
    """Prepare to rebuild rows of a weight, `(rows, in_features)`.

    The difference of code and zero, the product, and the sum with a zero in weight
    units are each rounded to float32, and with `arithmetic="scale"` then to the scales'
    dtype.

    Raises:
        BackendError: a group or a zero is out of range.
        PackingError: the codes are none of the layout's.

    """
    spread, words = scheme.spread, parts["codes"].array
    codes = unpack(scheme.pack, words, scheme.bits, spread.table(shape))
    table = codes.reshape(math.prod(shape[:-1]), shape[-1])
    scales = blocks(to_float32(parts["scales"]), spread, shape)
    zeros = blocks(_zeros(scheme, parts, shape), spread, shape)
    groups = _groups(scheme, parts.get("g_idx"), shape)
    dtype = parts["scales"].dtype if scheme.arithmetic == "scale" else "F32"

    def rebuild(block: slice) -> Float32:
        values = _values(scheme, table[block])
        scale, zero = (each.of_rows(block, groups) for each in (scales, zeros))
        with np.errstate(over="ignore", invalid="ignore"):
            if scheme.zero.kind in {"shift", "bias"}:
                product = rounded(values * scale, dtype)
                return rounded(product + zero, dtype)
            return rounded(rounded(values - zero, dtype) * scale, dtype)

    return rebuild


def _values(scheme: Integer, codes: Codes) -> Float32:
    """Find what codes stand for: exact."""
    middle = 1 << (scheme.bits - 1)
    if scheme.code == "signed":  # the sign bit turned over, the code is offset
        codes = codes ^ np.uint8(middle)
    values = codes.astype(np.float32)
    return values if scheme.code == "unsigned" else values - np.float32(middle)


def _zeros(scheme: Integer, parts: Mapping[str, Stored], shape: Shape) -> Float32:
    """Find the zero of every block, in the shape of the scales.

    One that is subtracted in weight units is given with the other sign, since
    `x + -z` is `x - z` to the bit.
    """
    zero, numbers = scheme.zero, scheme.spread.shape(shape)
    if zero.kind in {"none", "middle"}:
        middle = 1 << (scheme.bits - 1)
        value = np.float32(middle if zero.kind == "middle" else 0)
        return np.broadcast_to(value, numbers)
    if zero.pack:
        return _packed_zeros(scheme, parts["zeros"], numbers)
    stored = parts["zeros"]
    is_integer = stored.dtype.startswith(("I", "U"))
    values = _exact(stored) if is_integer else to_float32(stored)
    values = values + np.float32(zero.plus) if zero.plus else values
    return -values if zero.kind == "shift" else values


def _packed_zeros(scheme: Integer, stored: Stored, numbers: Shape) -> Float32:
    """Unpack zeros; what readers add wraps around, as in AutoGPTQ at 2, 4 and 8 bits.

    Readers differ where that happens: a zero of 0 has no one form in GPTQ's first
    format.
    """
    codes = unpack(scheme.zero.pack, stored.array, scheme.bits, numbers)
    mask = (1 << scheme.bits) - 1
    # uint8 wraps around at 256, which is a multiple of every width's range.
    codes = (codes + np.uint8(scheme.zero.plus & mask)) & np.uint8(mask)
    return _values(scheme, codes) if scheme.zero.signed else codes.astype(np.float32)


def _exact(stored: Stored) -> Float32:
    """Widen integers that float32 holds.

    Raises:
        BackendError: one is too large.

    """
    array = stored.array
    if array.size and not -_EXACT <= int(array.min()) <= int(array.max()) <= _EXACT:
        raise BackendError(f"a zero is beyond {_EXACT}, where float32 skips integers")
    return array.astype(np.float32)


def _groups(
    scheme: Integer, listed: Stored | None, shape: Shape
) -> npt.NDArray[np.intp] | None:
    """Find the group of every input, where a list says it.

    Raises:
        BackendError: there is no such group, or blocks are none of inputs.

    """
    if scheme.order == "sequential" or listed is None:
        return None
    if scheme.spread.form.startswith("flat"):
        raise BackendError(f"{scheme} has no groups of inputs that g_idx could list")
    size = scheme.spread.columns or shape[-1]
    groups, count = listed.array.astype(np.intp), -(-shape[-1] // size)
    if groups.size and (groups == -1).all():
        return None  # no order, as compressed-tensors writes it
    if int(groups.min()) < 0 or int(groups.max()) >= count:
        raise BackendError(
            f"g_idx has groups {groups.min()} to {groups.max()}; there are {count}, "
            f"counted from 0"
        )
    return groups
