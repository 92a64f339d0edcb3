"""The weights of a checkpoint, ready for a backend: parts by role, read on demand.

Example:
    >>> source = CheckpointWeights(open_checkpoint(Path("out")))
    >>> load_into(model, source)  # doctest: +SKIP

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.errors import BackendError
from qmanifest.families import is_turned, swapped
from qmanifest.logical import logical_shape
from qmanifest.packings.arrays import Stored, to_array
from qmanifest.reading.tensor_bytes import read_tensor

if TYPE_CHECKING:
    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorInfo


_NOT_DECODED: Final = ("low_rank_a", "low_rank_b", "act_pre_scale")
"""Roles of what changes a layer in a way that is not known here."""


class CheckpointWeights:
    """One model of a checkpoint as a source of weights."""

    def __init__(self, checkpoint: Checkpoint, component: str | None = None) -> None:
        """Pick a component; a checkpoint of one model needs no name.

        Raises:
            BackendError: there is no such component, or more than one to pick from.

        """
        found = {part.name: (part, store) for part, store in checkpoint.found()}
        if component is None and len(found) == 1:
            (component,) = found
        if component not in found:
            names = ", ".join(map(repr, found)) or "none"
            raise BackendError(
                f"no component {component!r} was found; there are: {names}. "
                "Name one of them."
            )
        self.component: Component
        self.store: Store
        self.component, self.store = found[component]
        self._weights = {weight.name: weight for weight in self.component.weights}
        weights = self._weights.values()
        parts = {part for each in weights for part in each.names.of(each.name)}
        parts |= {weight.codes for weight in weights}
        self._dense = tuple(name for name in self.store.index if name not in parts)

    def names(self) -> tuple[str, ...]:
        """Name the quantized weights."""
        return tuple(self._weights)

    def weight(self, name: str) -> tuple[Scheme, Shape]:
        """Give the scheme and the logical shape, `(out_features, in_features)`.

        Raises:
            BackendError: the weight is absent or not stored as its scheme says, or
                something is stored beside it that changes what the layer computes and
                is not decoded.

        """
        weight = self._find(name)
        changed = self.companion(name, *_NOT_DECODED)
        if changed is not None:
            raise BackendError(
                f"{changed.name!r} changes what the layer computes, and is not decoded"
            )
        shape = logical_shape(weight, self.store)
        if shape is None:
            codes = self.store.index.get(weight.codes)
            stored = "in no file" if codes is None else f"stored {codes}"
            raise BackendError(f"{name!r} is {stored}; {weight.scheme} was promised")
        return weight.scheme, shape

    def scales(self, name: str) -> TensorInfo:
        """Find the stored scales of a weight.

        Raises:
            BackendError: they are in no file.

        """
        weight = self._find(name)
        tensor = self.store.index.get(weight.part("scales"))
        if tensor is None:
            raise BackendError(f"the scales of {name!r} are in no file")
        return tensor

    def tensors(self, name: str) -> dict[str, TensorInfo]:
        """Find the stored parts of a weight, by role, without reading them.

        Raises:
            BackendError: a part is in no file.

        """
        parts = {}
        for part in self._find(name).parts():
            tensor = self.store.index.get(part.name)
            if tensor is not None:
                parts[part.role] = tensor
            elif not part.optional:
                raise BackendError(f"{part.role} {part.name!r} are in no file")
        return parts

    def companion(self, name: str, *roles: str) -> TensorInfo | None:
        """Find a tensor that serves a weight, by the first of `roles` that is stored.

        Raises:
            BackendError: there is no such weight.

        """
        weight = self._find(name)
        known = {role for role, _ in weight.names.suffixes}
        named = (self.store.index.get(weight.part(r)) for r in roles if r in known)
        return next((tensor for tensor in named if tensor is not None), None)

    def is_turned(self, name: str) -> bool:
        """Whether the 16-bit model has the inputs of a weight before the outputs.

        Raises:
            BackendError: there is no such weight.

        """
        return is_turned(self._find(name).names)

    def dense_shape(self, name: str) -> Shape:
        """Give the shape that the 16-bit model has a weight in.

        Raises:
            BackendError: as `weight`.

        """
        _, shape = self.weight(name)
        return swapped(shape) if self.is_turned(name) else shape

    def stored(self, name: str) -> dict[str, Stored]:
        """Read the parts of a weight, by role.

        Raises:
            BackendError: a part is in no file.

        """
        tensors = self.tensors(name)
        return {role: self._read(tensor) for role, tensor in tensors.items()}

    def dense_names(self) -> tuple[str, ...]:
        """Name the tensors that belong to no quantized weight."""
        return self._dense

    def dense(self, name: str) -> Stored | None:
        """Read a tensor that is not quantized; None where there is none."""
        tensor = self.store.index.get(name)
        return None if tensor is None else self._read(tensor)

    def _find(self, name: str) -> Weight:
        weight = self._weights.get(name)
        if weight is None:
            raise BackendError(f"{name!r} is not a quantized weight of the manifest")
        return weight

    def _read(self, tensor: TensorInfo) -> Stored:
        data = read_tensor(self.store.root, tensor)
        return Stored(tensor.dtype, to_array(tensor.dtype, tensor.shape, data))
