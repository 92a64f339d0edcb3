"""The weights of other layouts than MLX's, each held once against its scheme."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from qmanifest.families import DENSE
from qmanifest.rules.fit import Fit
from qmanifest.schemes import Codebook, Integer, Opaque, Scaled
from qmanifest.witness import witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store

_FITS: Final[WeakKeyDictionary[Checkpoint, tuple[Fit, ...]]] = WeakKeyDictionary()
"""What was worked out, for as long as the checkpoint is in use."""


def fits(checkpoint: Checkpoint) -> tuple[Fit, ...]:
    """Hold every weight of another layout that is stored against its scheme."""
    if checkpoint not in _FITS:
        _FITS[checkpoint] = tuple(_every(checkpoint))
    return _FITS[checkpoint]


def _every(checkpoint: Checkpoint) -> Iterator[Fit]:
    for component, store in checkpoint.found():
        kinds: dict[tuple[object, ...], Fit] = {}
        for weight in component.weights:
            if isinstance(weight.scheme, (Integer, Scaled, Codebook, Opaque)):
                fit = _fit(checkpoint, component, weight, store, kinds)
                if fit is not None:
                    yield fit


def _shared(fit: Fit, kinds: dict[tuple[object, ...], Fit]) -> Fit:
    """Let a fit take what the first of its kind has worked out."""
    first = kinds.setdefault(fit.kind, fit)
    return fit if first is fit else replace(fit, like=first)


def _fit(
    checkpoint: Checkpoint,
    component: Component,
    weight: Weight,
    store: Store,
    kinds: dict[tuple[object, ...], Fit],
) -> Fit | None:
    codes = store.index.get(weight.codes)
    if codes is None:
        return None
    if codes.dtype in DENSE and weight.name not in store.evidence.stored:
        return None  # QM209 has it
    parts = ((part.role, store.index.get(part.name)) for part in weight.parts())
    stored = {role: part for role, part in parts if part is not None}
    known = witness(checkpoint, component, weight)
    fit = _shared(Fit(component, store, weight, codes, stored, known), kinds)
    if known is not None and not known.strict and fit.fault is not None:
        # a dimension of the model may be another module's: it only confirms
        return _shared(replace(fit, witness=None, like=None), kinds)
    return fit
