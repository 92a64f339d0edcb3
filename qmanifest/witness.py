"""Witnesses: what proves the logical shape of a packed weight.

Packed columns and scale columns alone fix only `bits x group_size`: 4-bit groups of
32 and 2-bit groups of 64 are stored alike. What tells them apart is, best first, the
shape that the config declares, the 16-bit original, or the model's own dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from qmanifest.dimensions import hidden_size, in_features
from qmanifest.families import DENSE, is_turned, swapped
from qmanifest.findings import Location
from qmanifest.reading.config_file import MODEL_CONFIG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.tensors import Shape


class Witness(msgspec.Struct, frozen=True):
    """What is known of a weight's logical shape, and from where."""

    in_features: int
    shape: Shape | None
    """The whole shape, where the witness has it."""
    said_by: str
    """The witness in words, for messages."""
    at: Location
    strict: bool = True
    """Whether it speaks of this very tensor, not of modules called like it."""


def witness(
    checkpoint: Checkpoint, component: Component, weight: Weight
) -> Witness | None:
    """Find the best witness of a weight's logical shape."""
    if weight.shape:
        at = Location(checkpoint.config_name, weight.pointer, weight.name)
        shape = weight.shape
        return Witness(shape[-1], shape, f"the declared shape {list(shape)}", at)
    original = checkpoint.original(component.name, weight.name)
    if original is not None and original.shape and original.dtype in DENSE:
        at = Location(original.file, tensor=original.name)
        said = f"the 16-bit original ({original})"
        shape = swapped(original.shape) if is_turned(weight.names) else original.shape
        return Witness(shape[-1], shape, said, at)
    known = in_features(weight.name, model_of(checkpoint, component) or {})
    if known is None:
        return None
    width, keys = known
    own = checkpoint.component_configs.get(component.name)
    prefix = checkpoint.stores[component.name].sets[0].prefix if own else ""
    at = Location(prefix + MODEL_CONFIG)
    return Witness(width, None, f"{keys} = {width}", at, strict=False)


def model_of(checkpoint: Checkpoint, component: Component) -> Mapping[str, Any] | None:
    """Find the `config.json` that describes a component, if one surely does."""
    own = checkpoint.component_configs.get(component.name)
    if own:
        return own
    is_described = _describes_component(checkpoint, component)
    return checkpoint.model_config if is_described else None


def _describes_component(checkpoint: Checkpoint, component: Component) -> bool:
    """Whether `config.json` is the component's, where it may be another one's.

    Of several models, those that it describes have vectors of the hidden size.
    """
    several = checkpoint.manifest is not None and checkpoint.manifest.components[1:]
    store = checkpoint.stores.get(component.name)
    if not several or store is None:
        return True
    return hidden_size(checkpoint.model_config) in store.evidence.vectors
