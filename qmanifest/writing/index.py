"""The index of several shards, and what an earlier, different write left behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qmanifest.errors import WriteError
from qmanifest.writing.atomic import sync_folder, write_json

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from qmanifest.findings import JsonValue
    from qmanifest.writing.shards import ShardPlan


def index_name(stem: str = "model") -> str:
    """Name the index file of the shards of `stem`."""
    return f"{stem}.safetensors.index.json"


def index_document(
    plans: Sequence[ShardPlan], total_parameters: int
) -> dict[str, JsonValue]:
    """Say which shard holds which tensor, names sorted.

    Args:
        plans: every shard of the model.
        total_parameters: logical weights, which packed words do not show.

    Returns:
        The document; `total_size` is the sum of tensor bytes, without headers.

    """
    files: dict[str, JsonValue] = {
        tensor.name: plan.file for plan in plans for tensor in plan.tensors
    }
    return {
        "metadata": {
            "total_size": sum(plan.nbytes for plan in plans),
            "total_parameters": total_parameters,
        },
        "weight_map": dict(sorted(files.items())),
    }


def write_index(
    folder: Path, plans: Sequence[ShardPlan], total_parameters: int, stem: str = "model"
) -> str | None:
    """Write the index where there is more than one shard, and return its name.

    Raises:
        WriteError: the file cannot be written.

    """
    if len(plans) < 2:  # noqa: PLR2004 - one shard needs no index
        return None
    write_json(folder / index_name(stem), index_document(plans, total_parameters))
    return index_name(stem)


def written_files(plans: Sequence[ShardPlan], stem: str = "model") -> set[str]:
    """Name every file that writing `plans` makes: what `remove_stale` must keep."""
    index = {index_name(stem)} if len(plans) > 1 else set()
    return {plan.file for plan in plans} | index


def remove_stale(folder: Path, stem: str, keep: Collection[str]) -> tuple[str, ...]:
    """Remove what an earlier write of `stem` left and the new one did not replace.

    That is its shards and index not in `keep`, and temporary files of a killed run.
    Call it when the new files are in place and the config is not yet written.

    Returns:
        The names of the removed files, sorted.

    Raises:
        WriteError: a file cannot be removed.

    """
    name = (
        rf"{re.escape(stem)}(-\d+-of-\d+)?\.safetensors|{re.escape(index_name(stem))}"
    )
    ours = re.compile(rf"{name}|\.({name})\.[0-9a-f]{{8}}\.tmp")
    try:
        stale = sorted(
            path.name
            for path in folder.iterdir()
            if ours.fullmatch(path.name)
            and path.name not in keep
            and (path.is_symlink() or path.is_file())
        )
        for file in stale:
            (folder / file).unlink()
        sync_folder(folder)
    except OSError as error:
        raise WriteError(
            f"cannot remove what an earlier write left in {str(folder)!r}: "
            f"{error.strerror}. Remove old shards of {stem!r} by hand."
        ) from error
    return tuple(stale)
