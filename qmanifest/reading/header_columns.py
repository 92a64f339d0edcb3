"""Take the entries of a plain header apart by columns: all dtypes, all shapes, ...

An entry without spaces is one of few texts of dtype and shape, and a byte range. So all
entries are joined and split at what stands between the two, and every other piece is of
one sort. A piece that is not just what its sort may be makes the header not plain;
where all are, the entries are surely what the columns say, since nothing else stands in
them.
"""

from __future__ import annotations

from itertools import islice
from math import prod
from operator import itemgetter, sub
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec

from qmanifest.dtypes import DTYPES
from qmanifest.reading import limits

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from qmanifest.tensors import Shape

    _Dtype: TypeAlias = str
else:
    _Dtype = Literal[tuple(DTYPES)]

QUOTES: Final = 8
"""Quotes of an entry: three keys and a dtype."""
_BLOCK: Final = 2_048
"""Entries taken apart at once, few enough for the processor's cache."""
_OVERFLOW: Final = 1 << 63
_DIGITS: Final = b"0123456789"
_COMMAS: Final = bytes.maketrans(b"\n", b",")
_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class NotPlainError(ValueError):
    """The header is damaged, or written in another way."""


class _Kind(msgspec.Struct, forbid_unknown_fields=True):
    """An entry without its byte range."""

    dtype: _Dtype
    shape: tuple[_Size, ...]


_KIND: Final = msgspec.json.Decoder(_Kind)
_NUMBERS: Final = msgspec.json.Decoder(list[int])


class _Order(NamedTuple):
    """The two halves of an entry, in the order of one writer."""

    begins: bytes
    """How every entry begins."""
    middle: bytes
    """What stands between the halves."""
    kind: int
    """Which half has dtype and shape."""
    around_kind: tuple[bytes, bytes]
    """What makes that half an object of its own."""
    around_range: bytes
    """The other half without its digits."""


_ORDERS: Final = (
    # the safetensors library
    _Order(b'{"dtype":', b',"data_offsets":', 0, (b"", b"}"), b"[,]}"),
    # MLX
    _Order(
        b'{"data_offsets":',
        b',"dtype":',
        1,
        (b'{"dtype":', b""),
        b'{"data_offsets":[,]',
    ),
)


class Columns(NamedTuple):
    """Entries by columns of equal length."""

    dtypes: list[str]
    shapes: list[Shape]
    begins: list[int]
    """Counted from where the tensor data begins, as in the header."""
    ends: list[int]


def take_apart(entries: Collection[msgspec.Raw]) -> Columns:
    """Take entries apart, each of which is one valid JSON value; there is at least one.

    Raises:
        NotPlainError: the entries are not plain.
        ValueError: the same, as are msgspec's own errors.

    """
    order = _order(entries)
    kinds = _Kinds(order)
    columns = Columns([], [], [], [])
    waiting = iter(entries)
    while block := tuple(islice(waiting, _BLOCK)):
        more = _columns(block, order, kinds)
        columns.dtypes.extend(more.dtypes)
        columns.shapes.extend(more.shapes)
        columns.begins.extend(more.begins)
        columns.ends.extend(more.ends)
    return columns


def _columns(entries: Collection[msgspec.Raw], order: _Order, known: _Kinds) -> Columns:
    """Take a block of entries apart."""
    halves = order.middle.join(entries).split(order.middle)
    # Only a second half ends an entry, so no entry has more or fewer than two.
    if len(halves) != 2 * len(entries):
        raise NotPlainError("other fields")
    kinds = list(map(known.__getitem__, halves[order.kind :: 2]))
    begins, ends = _ranges(halves[1 - order.kind :: 2], order.around_range)
    if list(map(sub, ends, begins)) != list(map(itemgetter(2), kinds)):
        raise NotPlainError("sizes that do not fit")
    dtypes, shapes = (list(map(itemgetter(at), kinds)) for at in (0, 1))
    return Columns(dtypes, shapes, begins, ends)


def _order(entries: Collection[msgspec.Raw]) -> _Order:
    """Tell the order of the fields by the first entry."""
    first = bytes(next(iter(entries)))
    for order in _ORDERS:
        if first.startswith(order.begins):
            return order
    raise NotPlainError("another order")


class _Kinds(dict[bytes, tuple[str, "Shape", int]]):
    """Dtype, shape and bytes by the half of an entry that says them."""

    def __init__(self, order: _Order) -> None:
        super().__init__()
        self._around = order.around_kind

    def __missing__(self, half: bytes) -> tuple[str, Shape, int]:
        """Read a half for the first time: there are few different ones."""
        text = half.join(self._around)
        kind = _KIND.decode(text)
        if msgspec.json.encode(kind) != text:
            raise NotPlainError("a dtype or shape in another spelling")
        bits = prod(kind.shape) * DTYPES[kind.dtype].bits
        if len(kind.shape) > limits.MAX_RANK or not 0 < bits < _OVERFLOW or bits % 8:
            raise NotPlainError("a shape")
        self[half] = found = (kind.dtype, kind.shape, bits // 8)
        return found


def _ranges(halves: Sequence[bytes], around: bytes) -> tuple[list[int], list[int]]:
    """Read byte ranges as where they begin and where they end."""
    text = b"\n".join((*halves, b""))
    if text.translate(None, _DIGITS) != b"%b\n" % around * len(halves):
        raise NotPlainError("byte ranges")
    between = around.replace(b",", b"")
    spelled = b"[%b]" % text.translate(_COMMAS, between)[:-1]
    numbers = _NUMBERS.decode(spelled)
    if msgspec.json.encode(numbers) != spelled:
        raise NotPlainError("numbers in another spelling")
    return numbers[::2], numbers[1::2]
