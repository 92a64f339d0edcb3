"""What a conversion refuses to read: said all at once, before a byte is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.errors import WriteError
from qmanifest.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.checkpoint import Checkpoint

SHOWN: Final = 20
"""Faults that one message lists."""


def require_sound(opened: Checkpoint) -> None:
    """Refuse a checkpoint whose files or config are faulty.

    Raises:
        WriteError: with every fault.

    """
    refuse(
        "the checkpoint or its config is faulty",
        [*_defects(opened), *_lost_files(opened), *_lost_tensors(opened)],
    )


def refuse(what: str, faults: Sequence[str]) -> None:
    """Raise the faults, one a line, if there are any.

    Raises:
        WriteError: with the faults; of many, the rest is counted.

    """
    if not faults:
        return
    more = len(faults) - SHOWN
    lines = [*faults[:SHOWN], *([f"and {more:,} more"] if more > 0 else [])]
    raise WriteError(f"{what}:" + "".join(f"\n  {line}" for line in lines))


def _defects(opened: Checkpoint) -> Iterator[str]:
    """Walk over the errors that were met when it was opened."""
    for defect in opened.defects:
        if (defect.problem.severity or Severity.ERROR) is Severity.ERROR:
            yield defect.problem.message
    if opened.config is None:
        yield "there is no quantization config"


def _lost_files(opened: Checkpoint) -> Iterator[str]:
    """Walk over what no file holds, and what two files hold."""
    for component in opened.manifest.components if opened.manifest else ():
        if component.name not in opened.stores and component.weights:
            yield f"no file holds component {component.name!r}"
    for store in opened.stores.values():
        missing = [file for each in store.sets for file in each.missing]
        yield from (f"shard {file!r} is missing" for file in missing)
        if not missing and not store.complete:
            yield f"some shards of {store.files[:1]} are missing or unreadable"
        for tensor in store.index.repeats:
            first = store.index[tensor.name].file
            yield f"tensor {tensor.name!r} is in {first!r} and in {tensor.file!r}"


def _lost_tensors(opened: Checkpoint) -> Iterator[str]:
    """Walk over the lines of the config that have to match and do not."""
    for component, _ in opened.found():
        for entry in component.entries:
            if not entry.matches and entry.unused is Severity.ERROR:
                yield f"{entry.pointer} {entry.pattern.text!r} matches no tensor"
