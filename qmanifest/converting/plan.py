"""What `pack` is going to write: every weight's source checked, every tensor planned.

All that can be known to fail is known here, before the first byte is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmanifest.converting.dense import is_float
from qmanifest.converting.sound import refuse
from qmanifest.schemes import Affine
from qmanifest.writing.header import OutputTensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from qmanifest.manifest import Component, Weight
    from qmanifest.tensors import TensorIndex, TensorInfo


@dataclass(frozen=True, slots=True)
class PackedPart:
    """One part of a weight that is to be quantized."""

    weight: Weight
    scheme: Affine
    role: str
    source: TensorInfo


@dataclass(frozen=True, slots=True)
class ComponentPlan:
    """One component: what to write, and where each tensor comes from."""

    name: str
    root: Path
    """Folder of the source's shards."""
    tensors: tuple[OutputTensor, ...]
    packed: Mapping[str, PackedPart]
    """Parts to make, by the name of the tensor written."""
    copied: Mapping[str, TensorInfo]
    """Tensors to copy or round, by the same."""
    parameters: int
    """Logical parameters of the component."""

    @property
    def stem(self) -> str:
        """What the component's files are called."""
        return self.name or "model"


def plan_component(
    component: Component, index: TensorIndex, root: Path, dtype: str | None
) -> ComponentPlan:
    """Plan one component.

    Args:
        component: what the config promises of it.
        index: the 16-bit source.
        root: folder of the source's shards.
        dtype: dtype of scales and kept tensors; None for the config's own choice.

    Raises:
        WriteError: with every weight that cannot be packed as promised.

    """
    faults = [*_dtype_faults(component, dtype)]
    faults += [
        fault for weight in component.weights for fault in _faults(weight, index)
    ]
    refuse("the source cannot be packed under this config", faults)
    weights = {weight.name: weight for weight in component.weights}
    kept = {each.name: each for each in component.kept}
    allowed = _float_dtypes(component)
    tensors: list[OutputTensor] = []
    packed: dict[str, PackedPart] = {}
    copied: dict[str, TensorInfo] = {}
    for name, tensor in index.items():
        if name in weights:
            for part in _parts(weights[name], tensor, allowed, dtype):
                tensors.append(part[0])
                packed[part[0].name] = part[1]
            continue
        choice = kept[name].dtypes if name in kept else allowed
        code = _dense_dtype(tensor, choice, dtype)
        tensors.append(OutputTensor(name, code, tensor.shape))
        copied[name] = tensor
    total = sum(OutputTensor(n, "U8", t.shape).nbytes for n, t in index.items())
    return ComponentPlan(component.name, root, tuple(tensors), packed, copied, total)


def _float_dtypes(component: Component) -> tuple[str, ...]:
    """List the dtypes that scales and kept tensors may all have, the best one first."""
    promised = [
        w.scheme.scale for w in component.weights if isinstance(w.scheme, Affine)
    ]
    promised += [kept.dtypes for kept in component.kept]
    first, *others = dict.fromkeys(promised) or [("F16",)]
    shared = tuple(dtype for dtype in first if all(dtype in other for other in others))
    return shared or first


def _dense_dtype(
    tensor: TensorInfo, allowed: tuple[str, ...], asked: str | None
) -> str:
    """Pick the dtype that a tensor which is not quantized is written in."""
    if not is_float(tensor):
        return tensor.dtype
    if asked is not None:
        return asked
    return tensor.dtype if tensor.dtype in allowed else allowed[0]


def _parts(
    weight: Weight, tensor: TensorInfo, allowed: tuple[str, ...], dtype: str | None
) -> Iterator[tuple[OutputTensor, PackedPart]]:
    """Plan the parts of one weight."""
    scheme = weight.scheme
    assert isinstance(scheme, Affine)  # `_faults` has refused the others
    scale = _dense_dtype(tensor, allowed, dtype)
    for spec in weight.parts(tensor.shape):
        code = spec.dtypes[0] if spec.role == "codes" else scale
        output = OutputTensor(spec.name, code, spec.shape or ())
        yield output, PackedPart(weight, scheme, spec.role, tensor)


def _dtype_faults(component: Component, asked: str | None) -> Iterator[str]:
    """Say where the dtype that was asked for is none that the config has."""
    promised = {
        w.scheme.scale for w in component.weights if isinstance(w.scheme, Affine)
    } | {kept.dtypes for kept in component.kept}
    for dtypes in sorted(promised):
        if asked is not None and asked not in dtypes:
            yield f"the config has {' or '.join(dtypes)} where {asked} is asked for"


def _faults(weight: Weight, index: TensorIndex) -> Iterator[str]:
    """Say why one weight cannot be packed as promised."""
    tensor = index.get(weight.name)
    if tensor is None:
        yield f"{weight.name!r} is not in the source"
        return
    if not isinstance(weight.scheme, Affine):
        yield f"{weight.name!r}: packing as {weight.scheme} is not supported"
    elif not is_float(tensor):
        yield f"{weight.name!r} is {tensor} in the source, not F16, BF16 or F32"
    elif len(tensor.shape) < 2:  # noqa: PLR2004 - a matrix
        yield f"{weight.name!r} is {tensor} in the source, not a matrix"
    elif tensor.shape[-1] % weight.scheme.group_size:
        yield (
            f"{weight.name!r} has {tensor.shape[-1]} input features, which group size "
            f"{weight.scheme.group_size} does not divide"
        )
    elif weight.shape is not None and weight.shape != tensor.shape:
        yield (
            f"{weight.name!r} is declared {list(weight.shape)} and has "
            f"{list(tensor.shape)} in the source"
        )
