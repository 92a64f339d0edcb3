"""Unpack a checkpoint: every quantized weight rebuilt, everything else as it was."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmanifest.backends.base import beside_the_weight, require_parts
from qmanifest.checkpoint import open_checkpoint
from qmanifest.converting.ahead import Work, cut_rows, largest_block
from qmanifest.converting.blocks import read_rows, read_stored
from qmanifest.converting.computing import dense_bytes
from qmanifest.converting.dense import cast, dtype_code, is_float
from qmanifest.converting.output import (
    METADATA,
    PLAIN,
    Model,
    require_free,
    write_models,
)
from qmanifest.converting.sound import refuse, require_sound
from qmanifest.converting.targets import scaled_inputs, weight_dtype
from qmanifest.converting.unpackable import require_input_scale, undeclared, undecoded
from qmanifest.converting.whole import Whole
from qmanifest.dimensions import TEXT_CONFIGS
from qmanifest.errors import BackendError
from qmanifest.kernels import active
from qmanifest.packings.arrays import Stored
from qmanifest.reading.collector import collector_paused
from qmanifest.reading.config_file import BLOCKS, MODEL_CONFIG
from qmanifest.schemes import ROW_SCHEMES
from qmanifest.weights import CheckpointWeights
from qmanifest.writing.header import OutputTensor
from qmanifest.writing.shards import SHARD_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.kernels.base import Kernels
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorInfo
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

    Blocks of rows are read and rebuilt on two threads while others are written. Of
    layouts whose rows do not lie by themselves the codes of a weight are in memory as
    a whole, a byte each, and of at most two weights at a time; of a stack of experts
    those of one expert.

    Args:
        source: folder of the packed checkpoint.
        out: the folder to write.
        config: its config, where that is not in the folder under a usual name.
        components: folder or file of each component that is not in `source`.
        dtype: `float16`, `bfloat16` or `float32` for all floats. Where it is not
            given, weights come as `weight_dtype` chooses, and other tensors stay as
            they are.
        shard_size: most tensor bytes of a shard.
        force: replace a checkpoint that is in `out`.
        progress: told after every buffer how many bytes are written.

    Raises:
        BackendError: `QMANIFEST_KERNELS` asks for kernels that there are not.
        WriteError: the checkpoint is faulty, or a file cannot be written.
        FileNotFoundError: there is nothing at one of the paths.

    """
    code = dtype_code(dtype)
    require_free(out, (source, *(components or {}).values()), force=force)
    opened = open_checkpoint(source, config=config, components=components)
    require_sound(opened)
    with collector_paused():  # plans are many objects, and numba's import more
        models = [_Maker(opened, c.name, code).model() for c, _ in opened.found()]
    write_models(
        out,
        models,
        shard_size=shard_size,
        configs=_configs(opened),
        progress=progress,
        metadata=METADATA if _is_mlx(opened) else PLAIN,
    )


def _is_mlx(opened: Checkpoint) -> bool:
    """Whether every weight lies in MLX's layout."""
    weights = opened.manifest.weights() if opened.manifest else ()
    return all(isinstance(weight.scheme, ROW_SCHEMES) for _, weight in weights)


def _configs(opened: Checkpoint) -> list[tuple[str, str]]:
    """Keep the model's own config, without the quantization that is no more."""
    own = {
        key: _unquantized(value) if key in TEXT_CONFIGS else value
        for key, value in opened.model_config.items()
        if key not in BLOCKS
    }
    return [(MODEL_CONFIG, json.dumps(own, indent=2) + "\n")] if own else []


def _unquantized(value: object) -> object:
    """Take the quantization out of the config of a text model."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key not in BLOCKS}


class _Maker:
    """Makes the bytes of one component's dense tensors."""

    def __init__(self, opened: Checkpoint, component: str, dtype: str | None) -> None:
        self.weights = CheckpointWeights(opened, component)
        self._names = frozenset(self.weights.names())
        self._kernels = active()
        self._model = opened.component_configs.get(component) or opened.model_config
        self.dtype = dtype
        self.stem = component or "model"

    def model(self) -> Model:
        """Plan the model; parts that do not fit are found here, before any byte."""
        store = self.weights.store
        tensors, faults = [], [*undecoded(self.weights), *undeclared(self.weights)]
        for name in self.weights.names() if not faults else ():
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
        return Model(self.stem, tensors, self, total)

    def _weight(self, name: str) -> OutputTensor:
        """Plan one rebuilt weight."""
        scheme, shape = self.weights.weight(name)
        parts = self.weights.tensors(name)
        require_parts(scheme, parts, shape)  # type: ignore[arg-type] # it looks at dtype and shape alone
        require_input_scale(self.weights, name, shape)
        dtype = self.dtype or weight_dtype(self.weights, name, self._model)
        return OutputTensor(name, dtype, self.weights.dense_shape(name))

    def work(self, tensor: OutputTensor) -> Work[Buffer]:
        """Plan to rebuild a weight in blocks of rows, or to round another tensor."""
        store = self.weights.store
        if tensor.name not in self._names:
            return cast(store.root, store.index[tensor.name], tensor.dtype)
        scheme, shape = self.weights.weight(tensor.name)
        parts = self.weights.tensors(tensor.name)
        if not isinstance(scheme, ROW_SCHEMES):
            return self._whole(tensor, scheme, shape).work()
        factors = parts.pop("global_scale", None)
        factor = None if factors is None else read_stored(store.root, factors)
        rebuild = _Rebuild(
            self._kernels, store.root, tensor, scheme, shape, parts, factor
        )
        each = 4 * shape[-1]  # computed in float32, whatever is written
        within = 1 if factor is None else factor.array.size
        nbytes = 3 * largest_block(4 * math.prod(shape), each)
        return Work(rebuild.block, cut_rows(shape, each, within), nbytes)

    def _whole(self, tensor: OutputTensor, scheme: Scheme, shape: Shape) -> Whole:
        """Plan to rebuild a weight of a layout whose rows do not lie by themselves."""
        weights, name = self.weights, tensor.name
        beside = beside_the_weight(scheme)
        parts = {r: t for r, t in weights.tensors(name).items() if r not in beside}
        return Whole(
            weights.store.root,
            tensor,
            scheme,
            shape,
            parts,
            inputs=scaled_inputs(weights, name),
            turned=weights.is_turned(name),
        )

    def buffers(self, _: OutputTensor, done: Iterator[Buffer]) -> Iterator[Buffer]:
        """Give the bytes of one tensor to write."""
        return done


@dataclass(frozen=True, slots=True)
class _Rebuild:
    """How blocks of one weight are rebuilt."""

    kernels: Kernels
    root: Path
    output: OutputTensor
    scheme: Scheme
    shape: Shape
    parts: Mapping[str, TensorInfo]
    """All but the global scale."""
    factor: Stored | None
    """The global scale of every expert."""

    def block(self, rows: slice) -> Buffer:
        """Read and rebuild rows of the weight."""
        stored = {
            role: read_rows(self.root, part, rows) for role, part in self.parts.items()
        }
        if self.factor is not None:
            numbers = self.factor.array.reshape(-1)
            at = rows.start * numbers.size // math.prod(self.shape[:-1])
            stored["global_scale"] = Stored(self.factor.dtype, numbers[at : at + 1])
        shape = (rows.stop - rows.start, self.shape[-1])
        return dense_bytes(self.kernels, self.output, self.scheme, stored, shape)
