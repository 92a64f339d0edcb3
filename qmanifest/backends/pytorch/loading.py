"""Loading a checkpoint into a model: quantized layers swapped in, the rest copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor, nn

from qmanifest.backends.pytorch.modules import is_replaceable, quantized_layer
from qmanifest.backends.pytorch.report import LoadReport
from qmanifest.backends.pytorch.weight import load_weight, tensor_of
from qmanifest.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from qmanifest.backends.base import WeightSource

Rename: TypeAlias = Callable[[str], str | None] | Mapping[str, str]
"""From a name of the source to one of the model.

A mapping replaces a prefix, the longest that fits. A function may return None for a
tensor that is to be left out.
"""


def load_into(
    model: nn.Module,
    source: WeightSource,
    *,
    strict: bool = False,
    rename: Rename | None = None,
    dtype: torch.dtype | None = None,
) -> LoadReport:
    """Load every weight of `source` into `model`, in place.

    A layer `X` whose `X.weight` is stored quantized is replaced by a quantized one,
    which keeps the bias, the device and the training mode of the old. So are layers
    that are tied to it and have no weight of their own in the source. All other
    tensors are copied, one at a time. What is on the `meta` device goes to the CPU.

    Move the model to its device before loading: moved afterwards, tied quantized
    layers no longer share memory. Build optimizers after loading.

    Args:
        model: with `nn.Linear` and `nn.Embedding` where the source is quantized.
        source: the checkpoint.
        strict: raise, instead of reporting, when anything finds no place.
        rename: from names of the source to names of the model.
        dtype: what dense floats become, and what embeddings give; by default, the
            dtypes that the model has.

    Raises:
        BackendError: two tensors would go to one place; or, with `strict`, anything
            found no place. The model is then unchanged, unless the only fault is a
            dense tensor of another shape.

    """
    plan = _Plan(model, source, dtype)
    _find_places(plan, _renaming(rename))
    if strict and not plan.report.complete:
        raise BackendError(f"the model was not changed: {plan.report}")
    for place, name in plan.quantized.items():
        _swap(plan, place, name)
    filled: set[int] = set()
    for place, name in plan.dense.items():
        why = _copy(plan, place, name, filled)
        if why:
            plan.report.mismatched[name] = why
        else:
            plan.report.copied.append(place)
    if strict and not plan.report.complete:
        raise BackendError(f"the model was only partly loaded: {plan.report}")
    return plan.report


@dataclass(slots=True)
class _Plan:
    """What goes where."""

    model: nn.Module
    source: WeightSource
    dtype: torch.dtype | None
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """What the model has, by name; a shared tensor has several names."""
    quantized: dict[str, str] = field(default_factory=dict)
    """From names of the model to those of the source."""
    dense: dict[str, str] = field(default_factory=dict)
    """Likewise."""
    report: LoadReport = field(default_factory=LoadReport)

    def sharing(self, place: str) -> list[str]:
        """Names that are given what `place` is given, it first."""
        return [place, *(name for name, to in self.report.tied.items() if to == place)]


def _find_places(plan: _Plan, rename: Callable[[str], str | None]) -> None:
    """Find a place for every tensor of the source, and what every place gets."""
    report, tensors = plan.report, plan.tensors
    tensors.update(_persistent_tensors(plan.model))
    quantized = set(plan.source.names())
    names = chain(plan.source.names(), plan.source.dense_names())
    renamed = _renamed(names, rename)
    for place, name in renamed.items():
        if place not in tensors:
            report.unexpected.append(name)
        elif name not in quantized:
            plan.dense[place] = name
        elif why := _misfit(plan, place, name):
            report.mismatched[name] = why
        else:
            plan.quantized[place] = name
    given = {id(tensors[place]): place for place in (*plan.dense, *plan.quantized)}
    for place, tensor in tensors.items():
        if place in renamed:
            continue
        other = given.get(id(tensor))
        if other is None or (other in plan.quantized and not _layer(plan, place)):
            report.missing.append(place)
        else:
            report.tied[place] = other


def _persistent_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Find every parameter and buffer that a checkpoint holds, by all its names."""
    persistent = model.state_dict().keys()
    named = chain(
        model.named_parameters(remove_duplicate=False),
        model.named_buffers(remove_duplicate=False),
    )
    return {name: tensor for name, tensor in named if name in persistent}


def _renaming(rename: Rename | None) -> Callable[[str], str | None]:
    """Make a function of whatever names were asked for."""
    if rename is None:
        return lambda name: name
    if not isinstance(rename, Mapping):
        return rename
    longest_first = sorted(rename.items(), key=lambda pair: -len(pair[0]))

    def replace_prefix(name: str) -> str:
        for prefix, replacement in longest_first:
            if name.startswith(prefix):
                return replacement + name.removeprefix(prefix)
        return name

    return replace_prefix


def _renamed(
    names: Iterable[str], rename: Callable[[str], str | None]
) -> dict[str, str]:
    """Map names of the model to those of the source, leaving out what is unwanted."""
    places: dict[str, str] = {}
    for name in names:
        place = rename(name)
        if place is None:
            continue
        if place in places:
            raise BackendError(
                f"{places[place]!r} and {name!r} would both be loaded as {place!r}"
            )
        places[place] = name
    return places


def _layer(plan: _Plan, place: str) -> nn.Module | None:
    """Find the layer whose weight is called `place`, if it can be replaced."""
    path, _, leaf = place.rpartition(".")
    layer = plan.model.get_submodule(path)
    return layer if path and leaf == "weight" and is_replaceable(layer) else None


def _misfit(plan: _Plan, place: str, name: str) -> str | None:
    """Say why a quantized weight cannot go to a place, or None where it can."""
    if _layer(plan, place) is None:
        return "only nn.Linear and nn.Embedding inside a model hold quantized weights"
    scheme, shape = plan.source.weight(name)
    if scheme.kind == "opaque":
        return f"values of {scheme} are not decoded"
    expected = tuple(plan.tensors[place].shape)
    return None if shape == expected else _shapes(shape, expected)


def _shapes(found: Iterable[int], expected: Iterable[int]) -> str:
    return f"has shape {list(found)}, the model {list(expected)}"


def _swap(plan: _Plan, place: str, name: str) -> None:
    """Replace the layer of `place`, and those tied to it, by quantized ones."""
    old = plan.tensors[place]
    weight = load_weight(plan.source, name)
    weight = weight.to("cpu" if old.is_meta else old.device)
    made: dict[int, nn.Module] = {}
    for each in plan.sharing(place):
        path = each.removesuffix(".weight")
        layer = plan.model.get_submodule(path)
        if id(layer) not in made:
            made[id(layer)] = quantized_layer(layer, weight, plan.dtype)
        _set(plan.model, path, made[id(layer)])
        plan.report.swapped.append(path)


def _copy(plan: _Plan, place: str, name: str, filled: set[int]) -> str | None:
    """Copy a dense tensor to its place; say why where it does not fit."""
    stored, old = plan.source.dense(name), plan.tensors[place]
    if stored is None:
        return "the source names it but has no such tensor"
    value = tensor_of(stored)
    if value.shape != old.shape:
        return _shapes(value.shape, old.shape)
    floats = old.is_floating_point()
    if value.is_floating_point() != floats:
        return f"is {stored.dtype}, the model has {old.dtype}"
    dtype = plan.dtype if floats and plan.dtype else old.dtype
    value = value.to("cpu" if old.is_meta else old.device, dtype)
    if id(old) in filled:
        now = _get(plan.model, place)
        return None if torch.equal(now, value) else "differs from what it is tied to"
    filled.add(id(old))
    if old.is_meta or dtype != old.dtype:
        _replace(plan, old, value.clone())
    else:
        old.detach().copy_(value)
    return None


def _replace(plan: _Plan, old: Tensor, value: Tensor) -> None:
    """Put a new tensor wherever the model still has `old`."""
    if isinstance(old, nn.Parameter):
        value = nn.Parameter(value, requires_grad=old.requires_grad)
    for place, tensor in plan.tensors.items():
        if tensor is old and _get(plan.model, place) is old:
            _set(plan.model, place, value)


def _get(model: nn.Module, name: str) -> Tensor:
    """Find the tensor that the model now has under a name."""
    path, _, leaf = name.rpartition(".")
    found: Tensor = getattr(model.get_submodule(path), leaf)
    return found


def _set(model: nn.Module, name: str, value: Tensor | nn.Module) -> None:
    """Set a tensor or a layer of the model."""
    path, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(path), leaf, value)
