"""The tensor entries of a header: dtype, shape and byte range of every tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from qmanifest.dtypes import DTYPES
from qmanifest.findings import Defect, DefectKind, Location, Problem
from qmanifest.reading import limits
from qmanifest.reading.capped import capped
from qmanifest.reading.entry_faults import FIELDS, explain_entry, unknown_fields
from qmanifest.reading.tensor_names import long_names, odd_names
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.findings import JsonValue
    from qmanifest.tensors import Shape

_BITS: Final = {code: dtype.bits for code, dtype in DTYPES.items()}
_OVERFLOW: Final = 1 << 63


class Entries(msgspec.Struct, frozen=True):
    """The entries that make sense, in header order, and what is wrong with the rest."""

    tensors: tuple[TensorInfo, ...]
    defects: tuple[Defect, ...]
    whole: bool
    """Whether every entry of the header is in `tensors`."""


def read_entries(
    members: Mapping[str, JsonValue], file: str, data_start: int
) -> Entries:
    """Turn the members of a header, `__metadata__` left out, into tensors.

    Args:
        members: entries by tensor name.
        file: the shard's path relative to the checkpoint.
        data_start: offset of the tensor data in the file; entries count from there.

    """
    if len(members) > limits.MAX_TENSORS:
        return Entries((), (_too_many(len(members), file),), whole=False)
    tensors = []
    broken = []
    extended = []
    for name, entry in members.items():
        tensor = _tensor(name, entry, file, data_start)
        if tensor is None:
            broken.append(name)
            continue
        tensors.append(tensor)
        if isinstance(entry, dict) and len(entry) != len(FIELDS):
            extended.append(name)
    too_long = long_names(members, file)
    defects = (
        *capped((explain_entry(n, members[n], file) for n in broken), len(broken)),
        *too_long,
        *odd_names(members, file),
        *capped((unknown_fields(n, members[n], file) for n in extended), len(extended)),
    )
    return Entries(tuple(tensors), defects, whole=not broken and not too_long)


def _tensor(
    name: str, entry: JsonValue, file: str, data_start: int
) -> TensorInfo | None:
    """Read one entry; None where anything in it is wrong, for `explain_entry` to say.

    Runs for every tensor of a checkpoint, so it decides in one pass and says nothing.
    """
    if not isinstance(entry, dict):
        return None
    dtype, shape = entry.get("dtype"), entry.get("shape")
    offsets = entry.get("data_offsets")
    if type(dtype) is not str or type(shape) is not list or type(offsets) is not list:
        return None
    bits = _BITS.get(dtype)
    if bits is None or len(offsets) != 2:  # noqa: PLR2004 - begin and end
        return None
    begin, end = offsets
    if type(begin) is not int or type(end) is not int or begin < 0:
        return None
    size = _bits_of(shape, bits) if len(shape) <= limits.MAX_RANK else None
    if size is None or size != 8 * (end - begin):
        return None
    dimensions = cast("Shape", tuple(shape))
    return TensorInfo(
        name, dtype, dimensions, begin + data_start, end + data_start, file
    )


def _bits_of(shape: list[JsonValue], bits: int) -> int | None:
    """Multiply out a shape; None where a dimension is wrong or the product too large.

    Zeros do not hide an overflow: the product of the other dimensions is bounded too.
    """
    empty = False
    for dimension in shape:
        if type(dimension) is not int or dimension < 0:
            return None
        if dimension:
            bits *= dimension
            if bits >= _OVERFLOW:
                return None
        else:
            empty = True
    return 0 if empty else bits


def _too_many(found: int, file: str) -> Defect:
    most = limits.MAX_TENSORS
    return Defect(
        DefectKind.OVER_LIMIT,
        Problem(
            f"the header has {found:,} tensors; at most {most:,} are read",
            (Location(file=file),),
            expected=most,
            actual=found,
            hint="split the checkpoint into shards",
        ),
    )
