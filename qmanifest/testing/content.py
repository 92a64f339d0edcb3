"""Content of test tensors: finite, small, never all zero, the same on every machine."""

from __future__ import annotations

import struct
import zlib
from random import Random
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import DTYPES, nbytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmanifest.tensors import Shape

TEXT: Final = "text:"
"""How a value starts that is a text."""
_SMALLEST, _LARGEST = 0.006, 0.049
"""Magnitudes that stay within 0.005 and 0.05 after rounding to 16 bits."""
_FLOATS: Final = {"F16": "e", "BF16": "f", "F32": "f", "F64": "d", "C64": "f"}
"""`struct` letters; of a BF16 the upper half of a float32 is stored."""

SMALL_SCALES: Final[dict[str, Sequence[int]]] = {
    "e8m0": range(120, 123),
    "e4m3": range(4, 20),
}
"""Codes of scale bytes that stand for 0.0078 to 0.043, by number format."""
ALPHABETS: Final[dict[str, Sequence[int]]] = {
    "BOOL": range(2),
    "F8_E4M3": [byte for byte in range(256) if byte & 0x7F != 0x7F],  # noqa: PLR2004 - the two NaNs
    "F8_E5M2": [byte for byte in range(256) if byte & 0x7C != 0x7C],  # noqa: PLR2004 - infinities and NaNs
    "F8_E4M3FNUZ": [byte for byte in range(256) if byte != 0x80],  # noqa: PLR2004 - the NaN
    "F8_E5M2FNUZ": [byte for byte in range(256) if byte != 0x80],  # noqa: PLR2004 - the NaN
    "F8_E8M0": SMALL_SCALES["e8m0"],
}
"""Bytes of finite numbers, by dtype; dtypes not named here may have any."""


def content(
    name: str,
    dtype: str,
    shape: Shape,
    *,
    positive: bool = False,
    alphabet: Sequence[int] | None = None,
) -> bytes:
    """Make a tensor's bytes from its name.

    Args:
        name: the seed.
        dtype: a safetensors code.
        shape: as stored.
        positive: whether floats have one sign.
        alphabet: the bytes that may occur, instead of what `dtype` allows.

    """
    random = Random(zlib.crc32(name.encode()))  # noqa: S311 - content, not a secret
    count = nbytes(dtype, shape)
    if dtype not in _FLOATS:
        letters = alphabet or ALPHABETS.get(dtype, range(256))
        data = bytes(random.choices(letters, k=count))
        return data if any(data) else bytes(letters[-1:]) * count
    numbers = [
        random.uniform(_SMALLEST, _LARGEST) for _ in range(_numbers(dtype, count))
    ]
    if not positive:
        numbers = [random.choice((-number, number)) for number in numbers]
    return _encoded(dtype, numbers)


def filled(dtype: str, shape: Shape, value: str) -> bytes:
    """Make a tensor's bytes of a `value`.

    Args:
        dtype: a safetensors code.
        shape: as stored.
        value: a number that stands everywhere, or several after commas, which take
            turns; integers as stored for all but floats of 16 bits and more. Or
            `text:` and the text, padded with spaces.

    Raises:
        ValueError: `value` is no number, or the text is too long.
        OverflowError: `dtype` cannot hold it.

    """
    size = nbytes(dtype, shape)
    if value.startswith(TEXT):
        text = value.removeprefix(TEXT).encode()
        if len(text) > size:
            raise ValueError(f"a text of {len(text)} bytes in {size}")
        return text.ljust(size)
    each = [_number(dtype, text) for text in value.split(",")]
    once = b"".join(each)
    return (once * -(-size // len(once)))[:size]


def _number(dtype: str, text: str) -> bytes:
    """Encode one number; a complex one has the same in both parts."""
    if dtype in _FLOATS:
        return _encoded(dtype, [float(text)])
    number = int(text, 0)
    size = max(DTYPES[dtype].bits // 8, 1)
    return number.to_bytes(size, "little", signed=number < 0)


def _numbers(dtype: str, count: int) -> int:
    """Count the floats in `count` bytes; a complex number has two."""
    return count // (4 if dtype == "C64" else DTYPES[dtype].bits // 8)


def _encoded(dtype: str, numbers: Sequence[float]) -> bytes:
    """Round to `dtype`, BF16 toward zero, little-endian."""
    data = struct.pack(f"<{len(numbers)}{_FLOATS[dtype]}", *numbers)
    if dtype != "BF16":
        return data
    return b"".join(data[at + 2 : at + 4] for at in range(0, len(data), 4))
