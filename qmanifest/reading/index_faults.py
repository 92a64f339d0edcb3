"""Say what is wrong with an index file."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from qmanifest.findings import Defect, DefectKind, Location, Problem, json_pointer
from qmanifest.reading import limits
from qmanifest.reading.wording import listing, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from qmanifest.findings import JsonValue


def invalid(
    file: str, path: tuple[str, ...], value: JsonValue, expected: str
) -> Defect:
    """Report a value of the wrong type or range."""
    what = " of ".join(quoted(part) for part in reversed(path)) or "the index"
    return Defect(
        DefectKind.INVALID_VALUE,
        Problem(
            f"{what} is {shown(value)}, not {expected}",
            (Location(file=file, pointer=json_pointer(*path)),),
            expected=expected,
            actual=shown(value),
            hint="write the index file again from the shards",
        ),
    )


def missing_map(file: str, keys: Collection[str]) -> Defect:
    """Report an index without its map."""
    near = get_close_matches("weight_map", [key[:32] for key in keys], n=1)
    found = f"; found {listing(keys)}" if keys else ""
    return Defect(
        DefectKind.MISSING_KEY,
        Problem(
            f"the index has no 'weight_map'{found}",
            (Location(file=file, pointer=""),),
            expected="weight_map",
            hint=f"rename {near[0]!r} to 'weight_map'"
            if near
            else "write the index file again from the shards",
        ),
    )


def too_many(file: str, found: int) -> Defect:
    """Report an index over the limit."""
    most = limits.MAX_TENSORS
    return Defect(
        DefectKind.OVER_LIMIT,
        Problem(
            f"weight_map has {found:,} entries; at most {most:,} are read",
            (Location(file=file, pointer="/weight_map"),),
            expected=most,
            actual=found,
            hint="split the checkpoint",
        ),
    )


def unsafe_shard(file: str, shard: str, tensor: str, reason: str) -> Defect:
    """Report a shard name that is not opened, at one entry that has it."""
    return Defect(
        DefectKind.UNSAFE_PATH,
        Problem(
            f"shard name {quoted(shard)} {reason}; it was not opened",
            (
                Location(
                    file=file,
                    pointer=json_pointer("weight_map", tensor),
                    tensor=tensor,
                ),
            ),
            expected="a relative path to a .safetensors file in the folder",
            actual=shard,
            hint="name a shard that lies in the checkpoint's folder",
        ),
    )
