"""The folder that a conversion writes: every file whole, the config last."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from qmanifest.converting.ahead import in_order
from qmanifest.errors import WriteError
from qmanifest.reading.config_file import CONFIG_NAMES, MODEL_CONFIG
from qmanifest.reading.shard_names import EXTENSION, INDEX_EXTENSION, split_name
from qmanifest.writing.atomic import write_text
from qmanifest.writing.index import remove_stale, write_index, written_files
from qmanifest.writing.shards import plan_shards, shifted, write_shards

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.converting.ahead import Work
    from qmanifest.writing.header import OutputTensor
    from qmanifest.writing.shards import Progress, ShardPlan

METADATA: Final = {"format": "mlx"}
"""What loaders of MLX's layout look for in a header."""
PLAIN: Final = {"format": "pt"}
"""What loaders of other layouts look for."""

T = TypeVar("T")


class Maker(Protocol[T]):
    """Makes the bytes of one model's tensors."""

    def work(self, tensor: OutputTensor, /) -> Work[T]:
        """Plan what is done ahead for a tensor; asked in the order of writing."""

    def buffers(self, tensor: OutputTensor, done: Iterator[T], /) -> Iterable[Buffer]:
        """Give the bytes of a tensor, from its blocks that were made ahead."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model to write: its tensors, and where their bytes come from."""

    stem: str
    tensors: Sequence[OutputTensor]
    maker: Maker[Any]
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
    metadata: Mapping[str, str] = METADATA,
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
        metadata: of every header.

    Raises:
        WriteError: shards of another model are in the folder, or a file cannot be
            written.

    """
    planned = [(m, plan_shards(m.tensors, shard_size, m.stem)) for m in models]
    _require_replaced(out, {model.stem for model in models})
    _clear_configs(out)
    total = sum(_nbytes(plans) for _, plans in planned)
    works = [_works(model, plans) for model, plans in planned]
    before = 0
    with closing(
        in_order(chain.from_iterable(each.values() for each in works))
    ) as done:
        for (model, plans), work in zip(planned, works, strict=True):
            data = partial(_data, model.maker, work, done)
            write_shards(out, plans, data, metadata, shifted(progress, before, total))
            write_index(out, plans, model.parameters, model.stem)
            remove_stale(out, model.stem, written_files(plans, model.stem))
            before += _nbytes(plans)
    for name, text in configs:
        write_text(out / name, text)


def _works(model: Model, plans: Iterable[ShardPlan]) -> dict[str, Work[Any]]:
    """Plan the work for every tensor, in the order of writing."""
    return {
        tensor.name: model.maker.work(tensor)
        for plan in plans
        for tensor in plan.tensors
    }


def _data(
    maker: Maker[T],
    works: Mapping[str, Work[T]],
    done: Iterator[T],
    tensor: OutputTensor,
) -> Iterable[Buffer]:
    """Give the bytes of the tensor whose turn it is."""
    return maker.buffers(tensor, islice(done, len(works[tensor.name].blocks)))


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
