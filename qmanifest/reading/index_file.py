"""Read a `*.safetensors.index.json`: which shard has which tensor.

Source: https://huggingface.co/docs/huggingface_hub/package_reference/serialization
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from qmanifest.findings import Defect, DefectKind, JsonValue, Location, Problem
from qmanifest.reading import limits
from qmanifest.reading.capped import capped
from qmanifest.reading.files import FileProblem, is_inside, read_whole
from qmanifest.reading.index_faults import invalid, missing_map, too_many, unsafe_shard
from qmanifest.reading.json_text import JsonText, parse_json
from qmanifest.reading.shard_names import unsafe_reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from typing_extensions import TypeIs


class IndexFile(msgspec.Struct, frozen=True, dict=True):
    """One index file as stored, and what is wrong with it."""

    file: str
    """Path relative to the checkpoint."""
    weight_map: Mapping[str, str]
    """Shard by tensor name; shards are relative to the index file's folder."""
    total_size: int | None = None
    total_parameters: int | None = None
    text: str = ""
    defects: tuple[Defect, ...] = ()
    unsafe: frozenset[str] = frozenset()
    """Shard names of `weight_map` that are never opened."""
    readable: bool = False
    """Whether `weight_map` is all that the file says about shards."""

    @cached_property
    def shards(self) -> tuple[str, ...]:
        """The safe shard names, sorted."""
        return tuple(sorted(set(self.weight_map.values()) - self.unsafe))


def read_index(path: Path, file: str, root: Path | None = None) -> IndexFile:
    """Read one index file; whatever is wrong with it becomes a defect.

    Args:
        path: where the file is.
        file: what to call it: its path relative to the checkpoint.
        root: the folder that shards must lie in, links resolved; the index file's
            own folder where not given.

    """
    root = path.parent if root is None else root
    try:
        if not is_inside(root, path):
            return IndexFile(file, {}, defects=(_outside(file),))
        data = read_whole(path, limits.MAX_INDEX)
    except FileProblem as problem:
        return IndexFile(file, {}, defects=(problem.defect(file),))
    parsed = parse_json(data, file)
    if not parsed.readable:
        return IndexFile(file, {}, text=parsed.text, defects=parsed.defects)
    return _interpret(parsed, path.parent, root)


def _outside(file: str) -> Defect:
    return Defect(
        DefectKind.UNSAFE_PATH,
        Problem(
            "the index is a link that leads out of the checkpoint's folder",
            (Location(file=file),),
            hint="replace the link by the file itself",
        ),
    )


def _interpret(parsed: JsonText, folder: Path, root: Path) -> IndexFile:
    """Read shards and totals out of an index file's JSON."""
    file, document = parsed.file, parsed.value
    defects = list(parsed.defects)
    if not isinstance(document, dict):
        defects.append(invalid(file, (), document, "an object"))
        return IndexFile(file, {}, text=parsed.text, defects=tuple(defects))
    shards, whole, wrong = _read_map(document, file)
    metadata = document.get("metadata")
    if metadata is None:
        metadata = {}
    elif not isinstance(metadata, dict):
        defects.append(invalid(file, ("metadata",), metadata, "an object"))
        metadata = {}
    totals = {
        key: _read_total(metadata, key, file, defects)
        for key in ("total_size", "total_parameters")
    }
    unsafe, unsafe_defects = _check_names(shards, file, folder, root)
    return IndexFile(
        file,
        shards,
        totals["total_size"],
        totals["total_parameters"],
        parsed.text,
        (*defects, *wrong, *unsafe_defects),
        unsafe,
        readable=whole,
    )


def _read_map(
    document: Mapping[str, JsonValue], file: str
) -> tuple[Mapping[str, str], bool, tuple[Defect, ...]]:
    """Read `weight_map`; also whether it is whole, and what is wrong with it."""
    if "weight_map" not in document:
        return {}, False, (missing_map(file, document),)
    value = document["weight_map"]
    if not isinstance(value, dict):
        return {}, False, (invalid(file, ("weight_map",), value, "an object"),)
    if len(value) > limits.MAX_TENSORS:
        return {}, False, (too_many(file, len(value)),)
    if _all_strings(value):
        return value, True, ()
    shards = {name: shard for name, shard in value.items() if isinstance(shard, str)}
    wrong = [name for name in value if name not in shards]
    defects = capped(
        (invalid(file, ("weight_map", n), value[n], "a file name") for n in wrong),
        len(wrong),
    )
    return shards, not wrong, defects


def _all_strings(value: Mapping[str, JsonValue]) -> TypeIs[Mapping[str, str]]:
    """Whether all values are strings; few of them differ, and only those are asked."""
    try:
        different = set(value.values())
    except TypeError:  # arrays and objects are in no set
        return False
    return {str}.issuperset(map(type, different))


def _read_total(
    metadata: Mapping[str, JsonValue], key: str, file: str, defects: list[Defect]
) -> int | None:
    """Read a count; some writers store it as a float, which may be a whole number."""
    value = metadata.get(key)
    if value is None:
        return None
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    if whole and isinstance(value, (int, float)) and value >= 0:
        return int(value)
    expected = "a whole number of at least 0"
    defects.append(invalid(file, ("metadata", key), value, expected))
    return None


def _check_names(
    shards: Mapping[str, str], file: str, folder: Path, root: Path
) -> tuple[frozenset[str], tuple[Defect, ...]]:
    """Find the shard names that must not be opened, each with one entry that has it."""
    reasons = {
        shard: reason
        for shard in dict.fromkeys(shards.values())
        if (reason := _unsafe(shard, folder, root)) is not None
    }
    first_entry: dict[str, str] = {}
    for tensor, shard in shards.items() if reasons else ():
        first_entry.setdefault(shard, tensor)
    defects = capped(
        (
            unsafe_shard(file, shard, first_entry[shard], reason)
            for shard, reason in reasons.items()
        ),
        len(reasons),
    )
    return frozenset(reasons), defects


def _unsafe(shard: str, folder: Path, root: Path) -> str | None:
    reason = unsafe_reason(shard)
    path = folder / shard
    # Asked first because it is quick: an index may name a million absent shards.
    if reason is None and os.path.lexists(path) and not is_inside(root, path):
        return "is a link that leads out of the folder"
    return reason
