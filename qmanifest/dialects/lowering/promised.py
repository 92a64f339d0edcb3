"""Weights that a line of a config quantizes by name, and that are stored 16-bit.

Stored tensors decide what is quantized, so such a line would be taken for one that
says nothing of this model. It is a promise all the same, and was not kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.stacks import stack_modules
from qmanifest.families import DENSE
from qmanifest.patterns import Pattern, Syntax

if TYPE_CHECKING:
    from collections.abc import Callable

    from qmanifest.manifest import Component, Entry, Weight
    from qmanifest.tensors import TensorIndex


def module_pattern(module: str, index: TensorIndex | None) -> Pattern:
    """Read a line that names a layer, or the module that all of its layers lie in."""
    layer = index is None or module + SUFFIX in index
    if index is None or layer or module not in index.derived(_modules):
        return Pattern(module, Syntax.EXACT)
    if module + SUFFIX in index.derived(stack_modules):
        return Pattern(module, Syntax.EXACT)
    return Pattern(f"{module}.", Syntax.PREFIX)


def _modules(index: TensorIndex) -> frozenset[str]:
    """List every module that tensors lie in, however far below."""
    found: set[str] = set()
    for name in index:
        module = name.rpartition(".")[0]
        while module and module not in found:
            found.add(module)
            module = module.rpartition(".")[0]
    return frozenset(found)


def with_promised(
    component: Component,
    index: TensorIndex | None,
    make: Callable[[str, Entry], Weight | None],
) -> Component:
    """Add the weights that lines quantize and that are stored as plain floats.

    Args:
        component: with the weights that are stored quantized.
        index: the stored tensors.
        make: makes the weight of a name that a line says; None where it says none.

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
            weight = None if name in taken else make(name, entry)
            if weight is not None:
                added.setdefault(name, weight)
    return replace(component, weights=(*component.weights, *added.values()))
