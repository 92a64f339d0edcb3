"""Sizes side by side, as tables for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from qmanifest.cli.tables import Table, number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from qmanifest.sizes import Grouping, Sizes

SCHEMA_VERSION: Final = 1
_HEADERS: Final = "file headers"
_REPEATED: Final = "repeated tensors"


@dataclass(frozen=True, slots=True)
class SizeView:
    """What was promised, what is stored, and the files on disk."""

    by: Grouping
    promised: Sizes | None
    stored: Sizes | None
    files: Mapping[str, int]


def tables_of(view: SizeView) -> list[Table]:
    """Make the tables: bytes by group, figures, and files."""
    sides = _sides(view)
    columns = [_bytes_by_label(sizes, view) for sizes in sides.values()]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [(label, *_compared([c.get(label) for c in columns])) for label in labels]
    totals = [sizes.total for sizes in sides.values()]
    rows.append(("total", *_compared(totals)))
    difference = ("difference",) if len(sides) > 1 else ()
    tables = [Table((view.by, *sides, *difference), tuple(rows)), _figures(sides)]
    if view.files:
        files = [(file, number(size)) for file, size in view.files.items()]
        files.append(("total", number(sum(view.files.values()))))
        tables.append(Table(("file", "bytes"), tuple(files)))
    return tables


def notes_of(view: SizeView) -> list[str]:
    """Say what is not counted, and what of the files belongs to no tensor."""
    notes = []
    for side, sizes in _sides(view).items():
        notes += [f"{side}: {each}" for each in (*sizes.unknown, *sizes.assumed)]
    if view.stored is not None:
        rest = sum(view.files.values()) - view.stored.total
        if rest:
            notes.append(f"{rest:,} bytes of the files belong to no tensor")
    return notes


def as_json(view: SizeView) -> dict[str, Any]:
    """Give everything that the tables show as JSON; bytes throughout."""
    return {
        "schema_version": SCHEMA_VERSION,
        "by": view.by,
        "promised": _form(view.promised, view),
        "stored": _form(view.stored, view),
        "files": [{"file": file, "bytes": size} for file, size in view.files.items()],
    }


def _sides(view: SizeView) -> dict[str, Sizes]:
    sides = {"promised": view.promised, "stored": view.stored}
    return {side: sizes for side, sizes in sides.items() if sizes is not None}


def _bytes_by_label(sizes: Sizes, view: SizeView) -> dict[str, int]:
    """Sum bytes by group; what no group has comes at the end."""
    found = {group.label: group.nbytes for group in sizes.group(view.by)}
    if sizes.overhead:
        found[_HEADERS] = sizes.overhead
    if sizes.repeated:
        found[_REPEATED] = sizes.repeated
    return found


def _compared(values: list[int | None] | list[int]) -> tuple[str, ...]:
    """Write values, and stored less promised where there are both."""
    cells = tuple(number(value) for value in values)
    if len(values) == 1:
        return cells
    promised, stored = (value or 0 for value in values)
    return (*cells, f"{stored - promised:+,}" if stored != promised else "0")


def _figures(sides: Mapping[str, Sizes]) -> Table:
    """Make the table of what is no sum of bytes."""
    figures = {
        "parameters": [number(each.parameters or None) for each in sides.values()],
        "of these quantized": [
            number(each.quantized_parameters or None) for each in sides.values()
        ],
        "bits per quantized weight": [
            _decimal(each.bits_per_weight) for each in sides.values()
        ],
        "bits per weight, all": [
            _decimal(each.bits_per_weight_all) for each in sides.values()
        ],
        "bytes if all were 16-bit": [
            number(each.as_16bit or None) for each in sides.values()
        ],
    }
    rows = tuple((label, *values) for label, values in figures.items())
    return Table(("", *sides), rows)


def _decimal(value: Fraction | None) -> str:
    """Write a ratio with up to four decimals; a dash for none."""
    return "-" if value is None else f"{float(value):.4f}".rstrip("0").rstrip(".")


def _form(sizes: Sizes | None, view: SizeView) -> dict[str, Any] | None:
    if sizes is None:
        return None
    return {
        "total": sizes.total,
        "codes": sizes.codes,
        "scales": sizes.scales,
        "biases": sizes.biases,
        "other": sizes.other,
        "kept": sizes.kept,
        "headers": sizes.overhead,
        "repeated": sizes.repeated,
        "parameters": sizes.parameters,
        "quantized_parameters": sizes.quantized_parameters,
        "bits_per_weight": _number(sizes.bits_per_weight),
        "bits_per_weight_all": _number(sizes.bits_per_weight_all),
        "as_16bit": sizes.as_16bit,
        "groups": [
            {
                "label": group.label,
                "tensors": group.tensors,
                "parameters": group.parameters,
                "bytes": group.nbytes,
            }
            for group in sizes.group(view.by)
        ],
        "unknown": list(sizes.unknown),
        "assumed": list(sizes.assumed),
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
