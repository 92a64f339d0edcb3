"""The folder that a conversion writes: every file whole, the config last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.errors import WriteError
from qmanifest.reading.config_file import CONFIG_NAMES, MODEL_CONFIG
from qmanifest.reading.shard_names import EXTENSION, INDEX_EXTENSION, split_name
from qmanifest.writing.atomic import write_text
from qmanifest.writing.index import remove_stale, write_index, written_files
from qmanifest.writing.shards import plan_shards, shifted, write_shards

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.writing.header import OutputTensor
    from qmanifest.writing.shards import Progress, ShardPlan

METADATA: Final = {"format": "mlx"}
"""What loaders of this layout look for in a header."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model to write: its tensors, and where their bytes come from."""

    stem: str
    tensors: Sequence[OutputTensor]
    data: Callable[[OutputTensor], Iterable[Buffer]]
    parameters: int


def require_free(out: Path, sources: Iterable[Path], *, force: bool) -> None:
    """Refuse a folder that would lose something, or that is one of the sources.

    Raises:
        WriteError: with what is there.

    """
    for source in sources:
        folder = source if source.is_dir() else source.parent
        if out.resolve() == folder.resolve():
            raise WriteError(f"{out} is the source itself. Write to another folder.")
    if out.exists() and not out.is_dir():
        raise WriteError(f"{out} is not a folder")
    present = sorted(
        path.name
        for path in (out.iterdir() if out.is_dir() else ())
        if path.name.endswith(".safetensors") or path.name in CONFIG_NAMES
    )
    if present and not force:
        raise WriteError(
            f"{out} has a checkpoint already ({', '.join(present[:3])}). Name another "
            "folder, or replace it with --force."
        )


def write_models(
    out: Path,
    models: Sequence[Model],
    *,
    shard_size: int,
    configs: Sequence[tuple[str, str]],
    progress: Progress | None = None,
) -> None:
    """Write shards and indexes, remove what they replace, and then the configs.

    Old configs go first, so that a run that is killed never leaves one beside shards
    that it does not describe.

    Args:
        out: the folder; made where it is absent.
        models: what to write.
        shard_size: most tensor bytes of a shard.
        configs: names and texts of the configs, written in this order.
        progress: told about the bytes of all models together.

    Raises:
        WriteError: shards of another model are in the folder, or a file cannot be
            written.

    """
    planned = [(m, plan_shards(m.tensors, shard_size, m.stem)) for m in models]
    _require_replaced(out, {model.stem for model in models})
    _clear_configs(out)
    total = sum(plan.nbytes for _, plans in planned for plan in plans)
    done = 0
    for model, plans in planned:
        write_shards(out, plans, model.data, METADATA, shifted(progress, done, total))
        write_index(out, plans, model.parameters, model.stem)
        remove_stale(out, model.stem, written_files(plans, model.stem))
        done += _nbytes(plans)
    for name, text in configs:
        write_text(out / name, text)


def _clear_configs(out: Path) -> None:
    """Make the folder, without any config in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (*CONFIG_NAMES, MODEL_CONFIG):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot write to {str(out)!r}: {error.strerror}. "
            "Pass a folder that is writable."
        ) from error


def _require_replaced(out: Path, stems: Collection[str]) -> None:
    """Refuse a folder where shards of another model would stay beside the new ones."""
    others = sorted(
        path.name
        for path in (out.iterdir() if out.is_dir() else ())
        if path.name.endswith((EXTENSION, INDEX_EXTENSION))
        and split_name(path.name.removesuffix(INDEX_EXTENSION))[0] not in stems
    )
    if others:
        raise WriteError(
            f"{out} has shards of another model, which would stay: "
            f"{', '.join(others[:3])}. Remove them, or name another folder."
        )


def _nbytes(plans: Iterable[ShardPlan]) -> int:
    return sum(plan.nbytes for plan in plans)
