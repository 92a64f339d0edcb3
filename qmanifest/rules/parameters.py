"""How many logical parameters the stored tensors are: codes count, scales do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dtypes import elements
from qmanifest.families import DENSE

if TYPE_CHECKING:
    from qmanifest.manifest import Component
    from qmanifest.reading.stores import Store


def parameters(component: Component, store: Store) -> int:
    """Count logical parameters, the way MLX does: packed words as the codes in them.

    Scales, biases and zeros count nothing; what is not packed counts as it is.
    """
    weights = {weight.codes: weight for weight in component.weights}
    parts = {part for w in component.weights for part in w.names.of(w.name)}
    total = 0
    for name, tensor in store.index.items():
        if name in parts:
            continue
        weight = weights.get(name)
        shape = None if weight is None else weight.logical(tensor)
        if weight is None or shape is not None or not weight.scheme.bits:
            total += elements(shape or tensor.shape)
        elif tensor.dtype in DENSE:
            total += elements(tensor.shape)
        else:
            total += tensor.nbytes * 8 // weight.scheme.bits
    return total
