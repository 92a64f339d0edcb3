"""What the commands about one checkpoint have in common: its manifest, its names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmanifest.cli.values import UsageError, require

if TYPE_CHECKING:
    from qmanifest.checkpoint import Checkpoint
    from qmanifest.findings import Location
    from qmanifest.manifest import Component, Manifest
    from qmanifest.sizes import Shapes
    from qmanifest.tensors import Shape, TensorIndex


def opened(
    path: Path | None,
    config: Path | None = None,
    components: dict[str, Path] | None = None,
    base: Path | None = None,
) -> Checkpoint:
    """Open a checkpoint, or a config alone.

    Raises:
        UsageError: a path is not there, or none is given.

    """
    from qmanifest.checkpoint import open_checkpoint, open_config

    require(path, config, base)
    if path is not None:
        return open_checkpoint(path, config=config, components=components, base=base)
    if config is None:
        raise UsageError("nothing to open. Name a checkpoint, or a config by --config.")
    return open_config(config)


def manifest_of(checkpoint: Checkpoint) -> Manifest:
    """Give the manifest.

    Raises:
        UsageError: the config is absent or cannot be read.

    """
    if checkpoint.manifest is not None:
        return checkpoint.manifest
    problems = [defect.problem for defect in checkpoint.defects]
    why = next((each.message for each in problems if each.severity is None), None)
    where = checkpoint.config_name or f"{str(checkpoint.root)!r} has no config"
    raise UsageError(
        f"{where}{f': {why}' if why else ''}. `qmanifest validate` says all."
    )


def index_of(checkpoint: Checkpoint, component: Component) -> TensorIndex:
    """Give a component's stored tensors; none where it was not found."""
    from qmanifest.tensors import TensorIndex

    store = checkpoint.stores.get(component.name)
    return TensorIndex() if store is None else store.index


def shapes_of(
    checkpoint: Checkpoint, original: Path | None, manifest: Manifest
) -> Shapes | None:
    """Find dtype and logical shape of every tensor: in the 16-bit original, or stored.

    None where there is neither, as with a config alone.
    """
    if original is not None:
        indexes = indexes_of(original, manifest)
        return {
            c.name: _original_shapes(c, indexes[c.name]) for c in manifest.components
        }
    if not checkpoint.stores:
        return None
    return {c.name: _stored_shapes(checkpoint, c) for c in manifest.components}


def indexes_of(original: Path, manifest: Manifest) -> dict[str, TensorIndex]:
    """Find the tensors of each component in a 16-bit original."""
    from qmanifest.reading.stores import open_stores
    from qmanifest.tensors import TensorIndex

    stores = open_stores(original)
    found = {}
    for component in manifest.components:
        own = stores.named(component.name) if component.name else None
        store = own or stores.merged
        found[component.name] = store.index if store else TensorIndex()
    return found


def _original_shapes(
    component: Component, index: TensorIndex
) -> dict[str, tuple[str, Shape]]:
    """Read shapes off the 16-bit model, which may have inputs before outputs."""
    from qmanifest.families import is_turned, swapped

    turned = {w.name for w in component.weights if is_turned(w.names)}
    return {
        name: (
            tensor.dtype,
            swapped(tensor.shape) if name in turned else tensor.shape,
        )
        for name, tensor in index.items()
    }


def _stored_shapes(
    checkpoint: Checkpoint, component: Component
) -> dict[str, tuple[str, Shape]]:
    """Read logical shapes off what is stored, leaving out the companions."""
    from qmanifest.families import DENSE
    from qmanifest.logical import logical_shapes

    store = checkpoint.stores.get(component.name)
    logical = {} if store is None else logical_shapes(component, store)
    parts = {
        part
        for each in component.weights
        for part in (each.codes, *each.names.of(each.name))
    }
    index = index_of(checkpoint, component)
    shapes = {n: (t.dtype, t.shape) for n, t in index.items() if n not in parts}
    for weight in component.weights:
        codes = index.get(weight.codes)
        if codes is None:
            continue
        shape = logical.get(weight.name)
        if shape is None and codes.dtype in DENSE:
            shape = codes.shape
        if shape is not None:
            shapes[weight.name] = (codes.dtype, shape)
    return shapes


def line_of(checkpoint: Checkpoint, at: Location) -> Location:
    """Give a location in the config its line and column."""
    from dataclasses import replace

    from qmanifest.reading.json_text import locate

    text = checkpoint.config.text if checkpoint.config else ""
    if at.pointer is None or at.file != checkpoint.config_name or not text:
        return at
    line, column = locate(text, at.pointer) or (None, None)
    return replace(at, line=line, column=column)
