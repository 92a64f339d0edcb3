"""Weights that a line of a config quantizes by name, and that are stored 16-bit.

Stored tensors decide what is quantized, so such a line would be taken for one that
says nothing of this model. It is a promise all the same, and was not kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmanifest.families import DENSE
from qmanifest.manifest import Weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.manifest import Component, Entry
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorIndex


def with_promised(
    component: Component,
    index: TensorIndex | None,
    make: Callable[[Entry], Scheme | None],
) -> Component:
    """Add the weights that lines quantize and that are stored as plain floats.

    Args:
        component: with the weights that are stored quantized.
        index: the stored tensors.
        make: makes the scheme that a line says; None where it says none.

    """
    if index is None:
        return component
    taken = {weight.name for weight in component.weights}
    taken |= {kept.name for kept in component.kept}
    added: dict[str, Weight] = {}
    for entry in component.entries:
        if entry.purpose != "quantize":
            continue
        for name in entry.matches:
            tensor = index.get(name)
            matrix = tensor is not None and len(tensor.shape) > 1
            if tensor is None or not matrix or tensor.dtype not in DENSE:
                continue
            scheme = None if name in taken else make(entry)
            if scheme is not None:
                added.setdefault(name, Weight(name, scheme, entry.pointer))
    return replace(component, weights=(*component.weights, *added.values()))
