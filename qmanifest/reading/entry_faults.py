"""Say what is wrong with a tensor's entry in a header."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import DTYPES
from qmanifest.findings import Defect, DefectKind, JsonValue, Problem, Severity
from qmanifest.reading import limits
from qmanifest.reading.tensor_names import entry_location
from qmanifest.reading.wording import count, listing, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS: Final = ("dtype", "shape", "data_offsets")
"""The fields of an entry; all are required."""

_WRITE_AGAIN: Final = "write the file again with a correct writer"
_BY_OTHER_NAME: Final = {
    name: row.code
    for row in DTYPES.values()
    for name in (row.code.lower(), row.torch, row.numpy)
    if name is not None
}


@dataclass(frozen=True, slots=True)
class _Fault:
    message: str
    field: str | None = None
    """The field that is at fault, where it is one."""
    hint: str = _WRITE_AGAIN
    expected: JsonValue = None
    actual: JsonValue = None


def explain_entry(name: str, entry: JsonValue, file: str) -> Defect:
    """Report everything that is wrong with an entry as one defect."""
    faults = list(_entry_faults(entry)) or [_Fault("its entry cannot be read")]
    first = faults[0]
    parts = () if first.field is None else (first.field,)
    return Defect(
        DefectKind.BAD_ENTRY,
        Problem(
            f"tensor {quoted(name)}: {'; '.join(fault.message for fault in faults)}",
            (entry_location(file, name, *parts),),
            expected=first.expected,
            actual=first.actual,
            hint=first.hint,
        ),
    )


def unknown_fields(name: str, entry: JsonValue, file: str) -> Defect:
    """Warn of fields that safetensors does not define."""
    assert isinstance(entry, dict)
    unknown = [field for field in entry if field not in FIELDS]
    return Defect(
        DefectKind.BAD_ENTRY,
        Problem(
            f"tensor {quoted(name)}: unknown {'fields' if unknown[1:] else 'field'} "
            f"{listing(unknown)}, which readers ignore",
            (entry_location(file, name, unknown[0]),),
            hint="put what it says into __metadata__, or remove it",
            severity=Severity.WARNING,
        ),
    )


def _entry_faults(entry: JsonValue) -> Iterator[_Fault]:
    if not isinstance(entry, dict):
        yield _Fault(f"its entry is {shown(entry)}, not an object")
        return
    missing = [field for field in FIELDS if field not in entry]
    if missing:
        yield _Fault(f"its entry has no {' and no '.join(missing)}")
    fields = {
        "dtype": _dtype_fault,
        "shape": _shape_fault,
        "data_offsets": _offsets_fault,
    }
    faults = [
        fault
        for field, find in fields.items()
        if field in entry and (fault := find(entry[field])) is not None
    ]
    yield from faults
    if not missing and not faults:
        yield from _size_faults(entry["dtype"], entry["shape"], entry["data_offsets"])


def _dtype_fault(dtype: JsonValue) -> _Fault | None:
    if not isinstance(dtype, str):
        return _Fault(f"its dtype is {shown(dtype)}, not a string", "dtype")
    if dtype in DTYPES:
        return None
    meant = _BY_OTHER_NAME.get(dtype.lower()) or next(
        iter(get_close_matches(dtype[:16].upper(), DTYPES, n=1, cutoff=0.8)), None
    )
    hint = f"write {meant!r}" if meant else f"use one of {', '.join(DTYPES)}"
    return _Fault(
        f"its dtype {quoted(dtype)} does not exist", "dtype", hint, actual=dtype
    )


def _shape_fault(shape: JsonValue) -> _Fault | None:
    if not isinstance(shape, list):
        return _Fault(f"its shape is {shown(shape)}, not an array", "shape")
    if len(shape) > limits.MAX_RANK:
        return _Fault(
            f"its shape has {len(shape):,} dimensions; "
            f"at most {limits.MAX_RANK} are read",
            "shape",
        )
    for position, dimension in enumerate(shape):
        if type(dimension) is not int or dimension < 0:
            return _Fault(
                f"its shape has {shown(dimension)} at position {position}; "
                "a dimension is an integer of at least 0",
                "shape",
            )
    return None


def _offsets_fault(offsets: JsonValue) -> _Fault | None:
    field = "data_offsets"
    if not isinstance(offsets, list) or len(offsets) != 2:  # noqa: PLR2004 - a range
        return _Fault(f"its {field} are {shown(offsets)}, not [begin, end]", field)
    begin, end = offsets
    if type(begin) is not int or type(end) is not int or begin < 0 or end < 0:
        return _Fault(
            f"its {field} are {shown(offsets)}; both must be integers of at least 0",
            field,
        )
    if end < begin:
        return _Fault(
            f"its {field} are {shown(offsets)}: they end before they begin", field
        )
    return None


def _size_faults(
    dtype: JsonValue, shape: JsonValue, offsets: JsonValue
) -> Iterator[_Fault]:
    """Compare the bytes that dtype and shape need with those that the offsets span."""
    assert isinstance(dtype, str)
    assert isinstance(shape, list)
    assert isinstance(offsets, list)
    dimensions = [d for d in shape if isinstance(d, int)]
    begin, end = (offset for offset in offsets if isinstance(offset, int))
    described = f"{dtype} {shown(shape)}"
    bits = _product_below(dimensions, DTYPES[dtype].bits, 1 << 63)
    if bits is None:
        yield _Fault(f"its shape {shown(shape)} overflows 64 bits", "shape")
        return
    if 0 in dimensions:
        bits = 0
    if bits % 8:
        yield _Fault(
            f"{described} takes {bits:,} bits, not a whole number of bytes", "shape"
        )
    elif bits // 8 != end - begin:
        yield _Fault(
            f"{described} takes {count(bits // 8, 'byte')}, "
            f"and its data_offsets {shown(offsets)} span {count(end - begin, 'byte')}",
            "data_offsets",
            "correct the shape, the dtype or the offsets",
            expected=bits // 8,
            actual=end - begin,
        )


def _product_below(dimensions: list[int], start: int, limit: int) -> int | None:
    """Multiply the dimensions that are not 0; None from `limit` on."""
    product = start
    for dimension in dimensions:
        product *= dimension or 1
        if product >= limit:
            return None
    return product
