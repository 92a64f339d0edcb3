"""The weights that rules have to look at closely, told from the sound ones in one pass.

In almost every checkpoint almost every weight is stored just as it was promised: all
of its parts are there, in dtypes and shapes that follow from a witnessed width, or at
least fit the promise. The rules of names, parts, dtypes and layout have nothing to say
of such a weight, so it is looked at once and by none of them. Whatever is not surely
sound here is doubtful, which accuses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from qmanifest.evidence import COMPANIONS
from qmanifest.families import MLX_NAMES
from qmanifest.rules.readings import Packed, packed_weights
from qmanifest.rules.soundness import Verdict, judge
from qmanifest.rules.widths import widths_of
from qmanifest.witness import model_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorIndex, TensorInfo

_ZEROS: Final = ".zeros"
Doubt: TypeAlias = "tuple[Component, Store, Weight]"


class Doubts(msgspec.Struct, frozen=True):
    """What of one found component is not surely sound."""

    component: Component
    store: Store
    weights: tuple[Weight, ...]
    """Those that are not surely sound."""
    unproven: tuple[Weight, ...]
    """Those that are sound if the promised bits are the stored ones, as QM305 tells."""
    others: Collection[str]
    """The stored tensors that are no part of a sound or unproven weight."""
    fitting: frozenset[str]
    """Layouts of the sound and the unproven weights, all of which are packed."""

    @property
    def packings(self) -> frozenset[str]:
        """Layouts that weights of the component are stored in."""
        is_packed = self.store.evidence.is_packed
        doubtful = {each.scheme.pack for each in self.weights if is_packed(each.name)}
        return self.fitting | doubtful


_DOUBTS: Final[WeakKeyDictionary[Checkpoint, tuple[Doubts, ...]]] = WeakKeyDictionary()
_PACKED: Final[WeakKeyDictionary[Checkpoint, tuple[Packed, ...]]] = WeakKeyDictionary()
"""What was found, for as long as the checkpoint is in use: several rules ask for it."""


def doubts(checkpoint: Checkpoint) -> tuple[Doubts, ...]:
    """Tell of every found component what is not surely sound."""
    if checkpoint not in _DOUBTS:
        _DOUBTS[checkpoint] = tuple(
            _told_apart(checkpoint, component, store)
            for component, store in checkpoint.found()
        )
    return _DOUBTS[checkpoint]


def doubtful(checkpoint: Checkpoint) -> tuple[Doubt, ...]:
    """List the weights of every found component that are not surely sound."""
    return tuple(
        (each.component, each.store, weight)
        for each in doubts(checkpoint)
        for weight in each.weights
    )


def doubtful_packed(checkpoint: Checkpoint) -> tuple[Packed, ...]:
    """Read those of the doubtful weights that are stored packed with their scales."""
    if checkpoint not in _PACKED:
        packed = packed_weights(checkpoint, doubtful(checkpoint))
        _PACKED[checkpoint] = tuple(packed)
    return _PACKED[checkpoint]


def _told_apart(checkpoint: Checkpoint, component: Component, store: Store) -> Doubts:
    """Sort a component's weights."""
    index, weights = store.index, component.weights
    if checkpoint.base is not None:  # which may contradict any weight
        return Doubts(component, store, weights, (), index.keys(), frozenset())
    widths = widths_of(weights, model_of(checkpoint, component) or {})
    found = _sort(index, weights, widths, frozenset())
    others = _others(index, found)
    # No sound weight has zeros. What is stored of them is among the others.
    zeros = {name.removesuffix(_ZEROS) for name in others if name.endswith(_ZEROS)}
    if zeros:
        found = _sort(index, weights, widths, zeros)
        others = _others(index, found)
    return Doubts(
        component,
        store,
        tuple(found.doubtful),
        tuple(found.unproven),
        others,
        frozenset(found.packings),
    )


class _Sorted(msgspec.Struct, frozen=True):
    """Weights by verdict."""

    doubtful: list[Weight] = msgspec.field(default_factory=list)
    unproven: list[Weight] = msgspec.field(default_factory=list)
    parts: list[TensorInfo] = msgspec.field(default_factory=list)
    """The stored parts of those that are not doubtful."""
    packings: set[str] = msgspec.field(default_factory=set)
    """Layouts of those that are not doubtful."""


def _sort(
    index: TensorIndex,
    weights: Sequence[Weight],
    widths: Iterable[int | None],
    with_zeros: Collection[str],
) -> _Sorted:
    """Sort weights by what their parts look like; each look is judged once.

    Written to be quick, since this is the one pass over all weights: no text or tuple
    of it is kept, so that it stays in the processor's cache.
    """
    found, get = _Sorted(), index.by_name.copy().get
    parts = found.parts
    verdicts: dict[tuple[object, ...], Verdict] = {}
    for weight, width in zip(weights, widths, strict=False):
        name, scheme, shape = weight.name, weight.scheme, weight.shape
        stem = name.removesuffix(".weight")
        codes = get(name)
        scales, biases = get(stem + ".scales"), get(stem + ".biases")
        if (
            codes is None
            or scales is None
            or stem in with_zeros
            or (stem is name and name.endswith(COMPANIONS))
            or weight.names is not MLX_NAMES
            or (biases and (biases.shape, biases.dtype) != (scales.shape, scales.dtype))
        ):
            found.doubtful.append(weight)
            continue
        look = (
            id(scheme),
            shape,
            width,
            biases is None,
            codes.dtype,
            codes.shape,
            scales.dtype,
            scales.shape,
        )
        verdict = verdicts.get(look)
        if verdict is None:
            verdict = verdicts[look] = judge(
                scheme,
                shape[-1] if shape else width,
                shape[:-1] if shape else None,
                (codes.dtype, codes.shape),
                (scales.dtype, scales.shape),
                with_biases=biases is not None,
            )
            if verdict != "doubtful":
                found.packings.add(scheme.pack)
        if verdict == "doubtful":
            found.doubtful.append(weight)
            continue
        if verdict == "unproven":
            found.unproven.append(weight)
        parts += (codes, scales, biases) if biases else (codes, scales)
    return found


def _others(index: TensorIndex, found: _Sorted) -> Collection[str]:
    """List the stored tensors that are no part of a weight that is not doubtful."""
    parts = {part.name for part in found.parts}
    if len(parts) == len(index):
        return ()
    return tuple(name for name in index if name not in parts)
