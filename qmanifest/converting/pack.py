"""Pack a 16-bit or F32 checkpoint under a config: quantize, write, config last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.checkpoint import open_checkpoint
from qmanifest.converting.dense import cast, dtype_code, read_stored
from qmanifest.converting.output import Model, require_free, write_models
from qmanifest.converting.plan import plan_component
from qmanifest.converting.sound import require_sound
from qmanifest.errors import PackingError, WriteError
from qmanifest.packings import PACKINGS
from qmanifest.reading.config_file import MODEL_CONFIG, read_config
from qmanifest.writing.quantize import quantize_affine
from qmanifest.writing.shards import SHARD_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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

    Memory stays bounded by the largest tensor: one weight is read, quantized and
    written at a time. Files appear whole or not at all, the config last.

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
        WriteError: the config is faulty, or does not fit the source, or a file cannot
            be written.
        FileNotFoundError: there is nothing at one of the paths.

    """
    code = dtype_code(dtype)
    require_free(out, (source, *(components or {}).values()), force=force)
    opened = open_checkpoint(source, config=config, components=components)
    require_sound(opened)
    plans = [
        plan_component(component, store.index, store.root, code)
        for component, store in opened.found()
    ]
    if not any(plan.packed for plan in plans):
        raise WriteError(
            f"{config.name} names no tensor of {source} to quantize. Check its lists "
            "with 'qmanifest match'."
        )
    models = [
        Model(plan.stem, plan.tensors, _Maker(plan).data, plan.parameters)
        for plan in plans
    ]
    write_models(
        out,
        models,
        shard_size=shard_size,
        configs=_configs(opened, config),
        progress=progress,
    )


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
    """Makes the bytes of one component's tensors, each weight quantized once."""

    def __init__(self, plan: ComponentPlan) -> None:
        self.plan = plan
        self._dtypes = {tensor.name: tensor.dtype for tensor in plan.tensors}
        self._weight: str | None = None
        self._parts: dict[str, Buffer] = {}

    def data(self, tensor: OutputTensor) -> Iterable[Buffer]:
        """Give the bytes of one tensor to write."""
        part = self.plan.packed.get(tensor.name)
        if part is None:
            return cast(self.plan.root, self.plan.copied[tensor.name], tensor.dtype)
        if self._weight != part.weight.name:
            self._quantize(part)
        return (self._parts[part.role],)

    def _quantize(self, part: PackedPart) -> None:
        """Quantize a weight, and keep its parts until the next one's turn."""
        self._parts = {}
        scheme, weight = part.scheme, part.weight
        source = read_stored(self.plan.root, part.source)
        dtype = self._dtypes[weight.names.name(weight.name, "scales")]
        try:
            done = quantize_affine(source, scheme.bits, scheme.group_size, dtype)
        except PackingError as error:
            raise WriteError(f"{weight.name!r} cannot be packed: {error}") from error
        self._parts = {
            "codes": PACKINGS[scheme.pack].pack(done.codes, scheme.bits).data,
            "scales": done.scales.array.data,
            "biases": done.biases.array.data,
        }
        self._weight = weight.name
