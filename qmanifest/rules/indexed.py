"""The sets of shards that an index file speaks of, for the rules about both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.reading.index_file import IndexFile
    from qmanifest.reading.shards import ShardSet

SHOWN: Final = 5
"""Names shown in one message; all of them are in the locations."""


def indexed_sets(checkpoint: Checkpoint) -> Iterator[tuple[ShardSet, IndexFile]]:
    """Walk over the sets of shards that have a readable index file."""
    for store in checkpoint.all_stores:
        for shards in store.sets:
            if shards.index_file is not None and shards.index_file.readable:
                yield shards, shards.index_file


def is_foreign(shards: ShardSet, index_file: IndexFile) -> bool:
    """Whether the index is another checkpoint's: it names none of the files here."""
    named = {shards.prefix + shard for shard in index_file.shards}
    return bool(named) and bool(shards.files) and not named & set(shards.files)
