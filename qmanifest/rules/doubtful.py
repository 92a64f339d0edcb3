"""The weights that rules have to look at closely, told from the sound ones in one pass.

In almost every checkpoint almost every weight is stored just as it was promised: all
of its parts are there, in dtypes and shapes that follow from a witnessed width. The
rules of names, parts, dtypes and layout have nothing to say of such a weight, so it is
looked at once and by none of them. Whatever is not surely sound here is doubtful, which
accuses nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from qmanifest.dimensions import in_features
from qmanifest.families import MLX_NAMES
from qmanifest.layouts import ROWS
from qmanifest.rules.readings import BITS, GROUPS, Packed, packed_weights
from qmanifest.schemes import Affine
from qmanifest.witness import model_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorIndex

_NUMBER: Final = re.compile(r"\.\d+(?=\.)")
"""A layer's or an expert's number in a name."""
Doubt: TypeAlias = "tuple[Component, Store, Weight]"
Doubts: TypeAlias = "tuple[Component, Store, tuple[Weight, ...]]"
_DOUBTS: Final[WeakKeyDictionary[Checkpoint, tuple[Doubts, ...]]] = WeakKeyDictionary()
_PACKED: Final[WeakKeyDictionary[Checkpoint, tuple[Packed, ...]]] = WeakKeyDictionary()
"""What was found, for as long as the checkpoint is in use: several rules ask for it."""


def doubtful_by_component(checkpoint: Checkpoint) -> tuple[Doubts, ...]:
    """List every found component with its weights that are not surely sound."""
    if checkpoint not in _DOUBTS:
        _DOUBTS[checkpoint] = tuple(_doubtful(checkpoint))
    return _DOUBTS[checkpoint]


def doubtful(checkpoint: Checkpoint) -> tuple[Doubt, ...]:
    """List the weights of every found component that are not surely sound."""
    return tuple(
        (component, store, weight)
        for component, store, weights in doubtful_by_component(checkpoint)
        for weight in weights
    )


def doubtful_packed(checkpoint: Checkpoint) -> tuple[Packed, ...]:
    """Read those of the doubtful weights that are stored packed with their scales."""
    if checkpoint not in _PACKED:
        packed = packed_weights(checkpoint, doubtful(checkpoint))
        _PACKED[checkpoint] = tuple(packed)
    return _PACKED[checkpoint]


def _doubtful(checkpoint: Checkpoint) -> Iterator[Doubts]:
    # The original may contradict any weight, so with one they are all doubtful.
    may_be_sound = checkpoint.base is None
    for component, store in checkpoint.found():
        widths = _Widths(model_of(checkpoint, component) or {})
        weights = (
            weight
            for weight in component.weights
            if not (may_be_sound and _is_sound(weight, store.index, widths))
        )
        yield component, store, tuple(weights)


def _is_sound(weight: Weight, index: TensorIndex, widths: _Widths) -> bool:
    """Whether an affine weight is stored whole, with the shapes of its width."""
    scheme, names, name = weight.scheme, weight.names, weight.name
    if type(scheme) is not Affine or names is not MLX_NAMES:
        return False
    stem = name.removesuffix(".weight")
    codes, scales = index.get(name), index.get(f"{stem}.scales")
    biases = index.get(f"{stem}.biases")
    if codes is None or scales is None or biases is None or not codes.shape:
        return False
    if f"{stem}.zeros" in index:
        return False
    width = weight.shape[-1] if weight.shape else widths.of(name)
    bits, group, layout = scheme.bits, scheme.group_size, ROWS[scheme.pack]
    if not width or width % group or bits not in BITS or group not in GROUPS:
        return False
    rows = weight.shape[:-1] if weight.shape else codes.shape[:-1]
    return (
        codes.dtype == layout.word_dtype
        and bits in layout.bits
        and scales.dtype == biases.dtype
        and scales.dtype in scheme.scale
        and codes.shape[:-1] == rows
        and codes.shape[-1] * layout.word_bits == width * bits
        and scales.shape == biases.shape == (*rows, width // group)
    )


@dataclass(slots=True)
class _Widths:
    """Inputs of modules by name, where layers that differ in number alone are one."""

    model: Mapping[str, Any]
    known: dict[str, int | None] = field(default_factory=dict)

    def of(self, name: str) -> int | None:
        """Say how many inputs a weight has, as `in_features` does."""
        alike = _NUMBER.sub(".0", name)
        if alike not in self.known:
            found = in_features(alike, self.model)
            self.known[alike] = None if found is None else found[0]
        return self.known[alike]
