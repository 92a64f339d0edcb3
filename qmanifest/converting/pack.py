"""Pack a 16-bit or F32 checkpoint under a config: quantize, write, config last."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from qmanifest.checkpoint import open_checkpoint
from qmanifest.converting.ahead import Scratch, Work, cut_rows, largest_block
from qmanifest.converting.blocks import read_rows, row_bytes
from qmanifest.converting.computing import quantize
from qmanifest.converting.dense import cast, dtype_code
from qmanifest.converting.output import Model, require_free, write_models
from qmanifest.converting.plan import plan_component
from qmanifest.converting.sound import require_sound
from qmanifest.errors import PackingError, WriteError
from qmanifest.kernels import active
from qmanifest.reading.collector import collector_paused
from qmanifest.reading.config_file import MODEL_CONFIG, read_config
from qmanifest.writing.shards import SHARD_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.converting.plan import ComponentPlan, PackedPart
    from qmanifest.writing.header import OutputTensor
    from qmanifest.writing.shards import Progress


def pack_checkpoint(
    source: Path,
    config: Path,
    out: Path,
    *,
    components: Mapping[str, Path] | None = None,
    shard_size: int = SHARD_SIZE,
    dtype: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Quantize a checkpoint as its config says, and write it with the config.

    Blocks of rows are read and quantized on two threads while others are written.
    Memory stays bounded: besides the blocks in flight, one weight's scales and biases
    are held. Files appear whole or not at all, the config last.

    Args:
        source: folder or file of the 16-bit or F32 checkpoint.
        config: the config to pack under; written unchanged beside the shards.
        out: the folder to write.
        components: folder or file of each component that is not in `source`.
        shard_size: most tensor bytes of a shard.
        dtype: `float16` or `bfloat16` for scales and kept tensors; where it is not
            given, 16-bit tensors keep their dtype if the config allows, and F32 ones
            become what the config names first.
        force: replace a checkpoint that is in `out`.
        progress: told after every buffer how many bytes are written.

    Raises:
        BackendError: `QMANIFEST_KERNELS` asks for kernels that there are not.
        WriteError: the config is faulty, or does not fit the source, or a file cannot
            be written.
        FileNotFoundError: there is nothing at one of the paths.

    """
    code = dtype_code(dtype)
    require_free(out, (source, *(components or {}).values()), force=force)
    opened = open_checkpoint(source, config=config, components=components)
    require_sound(opened)
    plans = _plans(opened, code)
    if not any(plan.packed for plan in plans):
        raise WriteError(
            f"{config.name} names no tensor of {source} to quantize. Check its lists "
            "with 'qmanifest match'."
        )
    write_models(
        out,
        [Model(p.stem, p.tensors, _Maker(p), p.parameters) for p in plans],
        shard_size=shard_size,
        configs=_configs(opened, config),
        progress=progress,
    )


def _plans(opened: Checkpoint, dtype: str | None) -> list[ComponentPlan]:
    """Plan every component that was found."""
    with collector_paused():  # plans are many objects
        return [
            plan_component(component, store.index, store.root, dtype)
            for component, store in opened.found()
        ]


def _configs(opened: Checkpoint, config: Path) -> list[tuple[str, str]]:
    """List the configs to write: the model's own, and the one packed under."""
    assert opened.dialect is not None
    assert opened.config is not None
    name = opened.dialect.file_name
    found = []
    own = opened.root / MODEL_CONFIG
    if name != MODEL_CONFIG and own.exists() and own.resolve() != config.resolve():
        found.append((MODEL_CONFIG, _model_text(own)))
    return [*found, (name, opened.config.text)]


def _model_text(path: Path) -> str:
    """Read the model's own config, to be copied as it is."""
    file = read_config(path, MODEL_CONFIG)
    if file.object is None:
        message = file.defects[0].problem.message
        raise WriteError(f"{path} cannot be copied: {message}. Correct or remove it.")
    return file.text


class _Maker:
    """Makes the bytes of one component's tensors, each weight quantized once.

    The parts of a weight follow each other in a file, so that its scales and biases
    are kept while its codes are written.
    """

    def __init__(self, plan: ComponentPlan) -> None:
        self.plan = plan
        self._dtypes = {tensor.name: tensor.dtype for tensor in plan.tensors}
        self._kernels = active()
        self._scratch = Scratch()
        self._last: str | None = None
        self._quantizing: set[str] = set()
        self._kept: dict[str, list[Buffer]] = {}

    def work(self, tensor: OutputTensor) -> Work[Any]:
        """Plan to quantize a weight at the first of its parts, or to round a tensor."""
        part = self.plan.packed.get(tensor.name)
        if part is None:
            return cast(self.plan.root, self.plan.copied[tensor.name], tensor.dtype)
        source = part.source
        blocks = cut_rows(source.shape, row_bytes(source))
        if self._last == part.weight.name and part.role != "codes":
            blocks = []
        else:
            self._quantizing.add(tensor.name)
        self._last = part.weight.name
        nbytes = 3 * largest_block(source.nbytes, row_bytes(source))
        return Work(partial(self._quantize, part), blocks, nbytes)

    def buffers(self, tensor: OutputTensor, done: Iterator[Any]) -> Iterator[Buffer]:
        """Give the bytes of one tensor to write."""
        part = self.plan.packed.get(tensor.name)
        if part is None:
            yield from done
        elif tensor.name in self._quantizing:
            self._kept = {"scales": [], "biases": []}
            yield from self._parts(part, done)
        else:
            yield from self._kept[part.role]

    def _parts(
        self, part: PackedPart, done: Iterator[dict[str, Buffer]]
    ) -> Iterator[Buffer]:
        """Give one part of a weight that is quantized now, and keep the small ones."""
        try:
            for made in done:
                for role, kept in self._kept.items():
                    kept.append(made[role])
                yield made[part.role]
        except PackingError as error:
            raise self._refusal(part, error) from error

    def _quantize(self, part: PackedPart, rows: slice) -> dict[str, Buffer]:
        """Read and quantize rows of a weight."""
        size = (rows.stop - rows.start) * row_bytes(part.source)
        buffer = self._scratch.buffer("source", size)
        source = read_rows(self.plan.root, part.source, rows, buffer)
        dtype = self._scale_dtype(part)
        return quantize(self._kernels, source, part.scheme, dtype)

    def _scale_dtype(self, part: PackedPart) -> str:
        return self._dtypes[part.weight.names.name(part.weight.name, "scales")]

    def _refusal(self, part: PackedPart, error: PackingError) -> WriteError:
        """Say why a weight cannot be packed, counted over all of it, not a block."""
        source = part.source
        rows = slice(0, math.prod(source.shape[:-1]))
        whole = read_rows(self.plan.root, source, rows)
        try:
            quantize(self._kernels, whole, part.scheme, self._scale_dtype(part))
        except PackingError as counted:
            error = counted
        return WriteError(f"{part.weight.name!r} cannot be packed: {error}")
