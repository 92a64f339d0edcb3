"""How many logical parameters the stored tensors are: codes count, scales do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dtypes import elements
from qmanifest.layouts import ROWS

if TYPE_CHECKING:
    from qmanifest.manifest import Component
    from qmanifest.reading.stores import Store


def parameters(component: Component, store: Store) -> int:
    """Count logical parameters, the way MLX does: packed words as the codes in them.

    Scales, biases and zeros count nothing; what is not packed counts as it is.
    """
    schemes = {weight.name: weight.scheme for weight in component.weights}
    parts = {p.name for w in component.weights for p in w.parts()} - schemes.keys()
    total = 0
    for name, tensor in store.index.items():
        if name in parts:
            continue
        count = elements(tensor.shape)
        scheme = schemes.get(name)
        if scheme is not None and tensor.dtype == ROWS[scheme.pack].word_dtype:
            count = count * ROWS[scheme.pack].word_bits // scheme.bits
        total += count
    return total
