"""Unpack a checkpoint: every quantized weight rebuilt, everything else as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from qmanifest.backends.base import require_parts
from qmanifest.backends.reference import dequantize
from qmanifest.checkpoint import open_checkpoint
from qmanifest.converting.dense import cast, dtype_code, is_float, rounded
from qmanifest.converting.output import Model, require_free, write_models
from qmanifest.converting.sound import refuse, require_sound
from qmanifest.errors import BackendError
from qmanifest.reading.config_file import BLOCKS, MODEL_CONFIG
from qmanifest.weights import CheckpointWeights
from qmanifest.writing.header import OutputTensor
from qmanifest.writing.shards import SHARD_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.writing.shards import Progress


def unpack_checkpoint(
    source: Path,
    out: Path,
    *,
    config: Path | None = None,
    components: Mapping[str, Path] | None = None,
    dtype: str | None = None,
    shard_size: int = SHARD_SIZE,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a dense checkpoint with the weights that a packed one stands for.

    Args:
        source: folder of the packed checkpoint.
        out: the folder to write.
        config: its config, where that is not in the folder under a usual name.
        components: folder or file of each component that is not in `source`.
        dtype: `float16`, `bfloat16` or `float32` for all floats. Where it is not
            given, weights come in the dtype of their scales, and in BF16 where their
            scales are bytes; other tensors stay as they are.
        shard_size: most tensor bytes of a shard.
        force: replace a checkpoint that is in `out`.
        progress: told after every buffer how many bytes are written.

    Raises:
        WriteError: the checkpoint is faulty, or a file cannot be written.
        FileNotFoundError: there is nothing at one of the paths.

    """
    code = dtype_code(dtype)
    require_free(out, (source, *(components or {}).values()), force=force)
    opened = open_checkpoint(source, config=config, components=components)
    require_sound(opened)
    makers = [_Maker(opened, c.name, code) for c, _ in opened.found()]
    write_models(
        out,
        [maker.model() for maker in makers],
        shard_size=shard_size,
        configs=_configs(opened),
        progress=progress,
    )


def _configs(opened: Checkpoint) -> list[tuple[str, str]]:
    """Keep the model's own config, without the quantization that is no more."""
    own = {key: v for key, v in opened.model_config.items() if key not in BLOCKS}
    return [(MODEL_CONFIG, json.dumps(own, indent=2) + "\n")] if own else []


class _Maker:
    """Makes the bytes of one component's dense tensors."""

    def __init__(self, opened: Checkpoint, component: str, dtype: str | None) -> None:
        self.weights = CheckpointWeights(opened, component)
        self._names = frozenset(self.weights.names())
        self.dtype = dtype
        self.stem = component or "model"

    def model(self) -> Model:
        """Plan the model; parts that do not fit are found here, before any byte."""
        store = self.weights.store
        tensors, faults = [], []
        for name in self.weights.names():
            try:
                tensors.append(self._weight(name))
            except BackendError as error:
                faults.append(f"{name!r}: {error}")
        refuse("the checkpoint cannot be unpacked", faults)
        for name in self.weights.dense_names():
            tensor = store.index[name]
            code = self.dtype if self.dtype and is_float(tensor) else tensor.dtype
            tensors.append(OutputTensor(name, code, tensor.shape))
        total = sum(OutputTensor(t.name, "U8", t.shape).nbytes for t in tensors)
        return Model(self.stem, tensors, self.data, total)

    def _weight(self, name: str) -> OutputTensor:
        """Plan one rebuilt weight."""
        scheme, shape = self.weights.weight(name)
        parts = self.weights.tensors(name)
        require_parts(scheme, parts, shape)  # type: ignore[arg-type] # it looks at dtype and shape alone
        return OutputTensor(name, self._weight_dtype(name), shape)

    def _weight_dtype(self, name: str) -> str:
        scales = self.weights.scales(name)
        return self.dtype or (scales.dtype if is_float(scales) else "BF16")

    def data(self, tensor: OutputTensor) -> Iterable[Buffer]:
        """Give the bytes of one tensor to write."""
        if tensor.name in self._names:
            scheme, shape = self.weights.weight(tensor.name)
            values = dequantize(scheme, self.weights.stored(tensor.name), shape)
            return (rounded(tensor.name, values, tensor.dtype),)
        store = self.weights.store
        return cast(store.root, store.index[tensor.name], tensor.dtype)
