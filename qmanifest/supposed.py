"""What a 16-bit model would be stored as under a config that names few weights.

The configs of most formats say how, and list what stays 16-bit; which weights are
quantized shows by their tensors. Where there are none yet, tensors are made up that
the config's own dialect reads as its own (`made_up`), and it is lowered against them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from qmanifest.families import DENSE
from qmanifest.made_up import Reader, made_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Manifest
    from qmanifest.tensors import TensorIndex, TensorInfo

HEADS: Final = ("lm_head", "embed_out", "output_layer", "output", "score", "classifier")
"""Modules at a model's end that stay 16-bit unless the config says otherwise."""
ROUTERS: Final = ("gate", "router", "shared_expert_gate")
"""Modules that choose experts, which most models have as no linear layer."""
EMBEDDINGS: Final = ("wte", "wpe", "shared", "relative_attention_bias")
"""Tables that do not have `embed` in their names."""
EXPERTS: Final = ".experts."
"""What stacks of experts have in their names."""
_SUFFIX: Final = ".weight"
_MATRIX: Final = 2


class Supposed(NamedTuple):
    """A manifest as if there were weights, and what was taken for granted."""

    manifest: Manifest
    assumed: tuple[str, ...]


def suppose(opened: Checkpoint, original: TensorIndex) -> Supposed | None:
    """Lower a config of one model against the tensors that it implies.

    Args:
        opened: a config alone.
        original: the tensors of the 16-bit model.

    Returns:
        None where the config declares its weights itself, has several models, or is of
        a format that is not decoded, which stores no weight by a config alone.

    """
    reader, manifest = Reader.of(opened), opened.manifest
    if reader is None or manifest is None or len(manifest.components) != 1:
        return None
    if reader.dialect.decodes == "none" or manifest.components[0].weights:
        return None
    tables = reader.dialect.tables
    chosen = _chosen(reader.read(original).component, original, tables=tables)
    component = reader.read(made_up(reader, original, chosen)).component
    return Supposed(
        replace(manifest, components=(component,)),
        tuple(_sentences(component, chosen, tables=tables)),
    )


def _chosen(
    bare: Component, original: TensorIndex, *, tables: bool
) -> dict[str, TensorInfo]:
    """Pick the weights that such configs quantize: linear layers that nothing keeps.

    With `tables` also embeddings and heads.
    """
    kept = {each.name for each in bare.kept}
    named = {
        name
        for entry in bare.entries
        if entry.purpose == "quantize"
        for name in entry.matches
    }
    return {
        name: tensor
        for name, tensor in original.items()
        if tensor.dtype in DENSE and name not in kept
        if ((tables or name in named) and _is_matrix(name, tensor))
        or _is_linear(name, tensor)
    }


def _is_matrix(name: str, tensor: TensorInfo) -> bool:
    return len(tensor.shape) == _MATRIX and name.endswith(_SUFFIX)


def _is_linear(name: str, tensor: TensorInfo) -> bool:
    """Whether a tensor is a linear layer's, or a stack of some, by name and shape."""
    if EXPERTS in name and len(tensor.shape) == _MATRIX + 1:
        return not name.endswith("bias")
    if not _is_matrix(name, tensor):
        return False
    segments = name.removesuffix(_SUFFIX).split(".")
    if segments[-1] in HEADS or segments[-1] in ROUTERS:
        return False
    return not any("embed" in each or each in EMBEDDINGS for each in segments)


def _sentences(
    component: Component, chosen: Mapping[str, TensorInfo], *, tables: bool
) -> Iterator[str]:
    """Say what was taken for granted."""
    quantized = {each.name for each in component.weights}
    others = "all tables" if tables else "no embeddings, routers or heads"
    yield (
        "Taken as quantized, because the config names no weights: "
        f"{_layers(len(quantized))} that no entry keeps, and {others}"
    )
    lost = [name for name in chosen if name not in quantized]
    if lost:
        yield (
            "Taken as 16-bit, because the config does not tell how they are stored: "
            f"{_layers(len(lost))} ({lost[0]!r}{', ...' if lost[1:] else ''})"
        )


def _layers(count: int) -> str:
    return f"{count:,} linear layer{'' if count == 1 else 's'}"
