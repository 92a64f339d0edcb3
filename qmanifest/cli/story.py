"""The story of one tensor: which entry claims it, what that promises, what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.cli.console import aligned
from qmanifest.cli.opening import (
    index_of,
    line_of,
    manifest_of,
    opened,
)
from qmanifest.cli.values import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Entry, Weight
    from qmanifest.tensors import Shape, TensorInfo, TensorSpec


def story_of(
    path: Path, tensor: str, config: Path | None, components: dict[str, Path]
) -> list[str]:
    """Tell all that is known of a tensor, once for each component that has it.

    Raises:
        UsageError: neither the config nor any file has it.

    """
    checkpoint = opened(path, config, components)
    manifest = manifest_of(checkpoint)
    lines: list[str] = []
    for component in manifest.components:
        for told in _told(checkpoint, component, tensor):
            lines += ["", *told] if lines else told
    for store in () if lines else checkpoint.all_stores:
        if tensor in store.index:
            stored = _where(store.index[tensor])
            lines.append(f"{tensor!r} is stored {stored}, and no entry claims it")
    if not lines:
        raise UsageError(_unknown(checkpoint, tensor))
    return lines


def _told(
    checkpoint: Checkpoint, component: Component, tensor: str
) -> Iterator[list[str]]:
    """Tell what one component says of a tensor: that it is quantized, or kept."""
    for weight in component.weights:
        if tensor in {weight.name, *(part.name for part in weight.parts())}:
            yield _quantized(checkpoint, component, weight)
    for kept in component.kept:
        if kept.name == tensor:
            stored = index_of(checkpoint, component).get(tensor)
            yield [
                *_head(checkpoint, component, tensor, kept.pointer, "kept 16-bit"),
                f"promised:   {' or '.join(kept.dtypes)}",
                f"stored:     {_where(stored)}",
            ]


def _quantized(
    checkpoint: Checkpoint, component: Component, weight: Weight
) -> list[str]:
    """Tell everything of a quantized weight."""
    shape, said = _shape(checkpoint, component, weight)
    rows = [("part", "promised", "stored")]
    for spec in weight.parts(shape):
        stored = index_of(checkpoint, component).get(spec.name)
        there = "optional" if spec.optional and stored is None else _where(stored)
        rows.append((f"{spec.role} {spec.name!r}", _promise(spec), there))
    return [
        *_head(checkpoint, component, weight.name, weight.pointer, "quantized"),
        f"scheme:     {weight.scheme}",
        f"shape:      {said}",
        "",
        *aligned(rows),
    ]


def _head(
    checkpoint: Checkpoint, component: Component, name: str, pointer: str, verdict: str
) -> list[str]:
    """Name the tensor, its component, and the entries that claim it."""
    lines = [f"{name!r} is {verdict}"]
    if component.name:
        lines.append(f"component:  {component.name}")
    lines.append(f"entry:      {_entry(checkpoint, component, pointer)}")
    lines += [
        f"also by:    {_entry(checkpoint, component, entry.pointer)}"
        for entry in component.entries
        if name in entry.matches and entry.pointer != pointer
    ]
    return lines


def _entry(checkpoint: Checkpoint, component: Component, pointer: str) -> str:
    """Show an entry's place, and its text."""
    from qmanifest.findings import Location
    from qmanifest.reports.places import shown_location

    at = line_of(checkpoint, Location(checkpoint.config_name, pointer))
    found: Entry | None = next(
        (each for each in component.entries if each.pointer == pointer), None
    )
    if found is None:
        return shown_location(at)
    return (
        f"{shown_location(at)} ({found.pattern.syntax.value} {found.pattern.text!r}, "
        f"{found.purpose})"
    )


def _shape(
    checkpoint: Checkpoint, component: Component, weight: Weight
) -> tuple[Shape | None, str]:
    """Find a weight's logical shape, and say what it is known from."""
    from qmanifest.errors import BackendError
    from qmanifest.logical import logical_shape
    from qmanifest.witness import witness

    stored = index_of(checkpoint, component).get(weight.codes)
    known = witness(checkpoint, component, weight)
    if known is not None and known.shape is not None:
        return known.shape, f"{list(known.shape)}, by {known.said_by}"
    store = checkpoint.stores.get(component.name)
    try:
        logical = None if store is None else logical_shape(weight, store)
    except BackendError as error:
        return None, f"not known: {error}"
    if logical is None:
        return None, "not known"
    if known is not None and len(logical) > 1:
        shape = (*logical[:-1], known.in_features)
        return shape, f"{list(shape)}, by {known.said_by}"
    beside = weight.logical(stored) != logical if stored else False
    by = "what is stored beside the codes" if beside else "the stored codes"
    return logical, f"{list(logical)}, by {by} at the promised bits"


def _promise(spec: TensorSpec) -> str:
    shape = "" if spec.shape is None else f" {list(spec.shape)}"
    return f"{'|'.join(spec.dtypes)}{shape}"


def _where(stored: TensorInfo | None) -> str:
    if stored is None:
        return "in no file"
    return f"{stored} in {stored.file}, bytes {stored.begin}-{stored.end}"


def _unknown(checkpoint: Checkpoint, tensor: str) -> str:
    """Say that there is no such tensor, and which one is spelled like it."""
    from qmanifest.patterns import Suggester

    names = {name for store in checkpoint.all_stores for name in store.index}
    names |= {weight.name for _, weight in manifest_of(checkpoint).weights()}
    near = Suggester(names).nearest(tensor)
    hint = f"did you mean {near!r}?" if near else "check its name."
    return f"neither the config nor any file has {tensor!r}; {hint}"
