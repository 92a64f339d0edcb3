"""A quantized weight as torch tensors, and stored tensors as torch sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from qmanifest.backends.base import require_parts
from qmanifest.dtypes import DTYPES
from qmanifest.errors import BackendError
from qmanifest.schemes import Codebook, Integer, Scaled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from qmanifest.backends.base import WeightSource
    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape

SIGNED: Final = {"U16": "<i2", "U32": "<i4", "U64": "<i8"}
"""Unsigned integers that torch can store but hardly compute with: same bits, signed."""
_NARROW: Final = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedWeight:
    """One weight as it is stored: packed codes and what they are scaled by."""

    scheme: Scheme
    shape: Shape
    """Logical, `(..., out_features, in_features)`."""
    parts: Mapping[str, Tensor]
    """By role, in the shapes of `scheme.parts(shape)`: `codes` are the packed words,
    with uint32 held as int32 of the same bits; then `scales`, and whichever others the
    scheme has, as `biases`, `zeros` and `global_scale`."""
    kept: list[Any] = field(default_factory=list, init=False, repr=False)
    """What was found out about the parts before a product, for the next one."""

    @property
    def words(self) -> Tensor:
        """The packed codes."""
        return self.parts["codes"]

    @property
    def dtype(self) -> torch.dtype:
        """What the weight is rebuilt in, and loses nothing in."""
        scales, scheme = self.parts["scales"].dtype, self.scheme
        if isinstance(scheme, Scaled) and scheme.rounds == "BF16":
            return torch.bfloat16
        narrow = _rounds_to_scales(scheme) and scales in _NARROW
        return scales if narrow else torch.float32

    @property
    def device(self) -> torch.device:
        """Where all parts are."""
        return self.words.device

    @property
    def nbytes(self) -> int:
        """Bytes of all parts together."""
        return sum(part.nbytes for part in self.parts.values())

    def to(self, device: torch.device | str) -> QuantizedWeight:
        """Move every part to `device`; what is there already is not copied."""
        moved = {role: part.to(device) for role, part in self.parts.items()}
        return QuantizedWeight(self.scheme, self.shape, moved)


def _rounds_to_scales(scheme: Scheme) -> bool:
    """Whether a rebuilt weight is rounded to the dtype of its scales."""
    if isinstance(scheme, Integer):
        return scheme.arithmetic == "scale"
    if isinstance(scheme, Scaled):
        return scheme.rounds == "scale"
    return not isinstance(scheme, Codebook)


def weight_from_parts(
    scheme: Scheme, shape: Shape, parts: Mapping[str, Stored]
) -> QuantizedWeight:
    """Make a weight from its stored parts, on the CPU.

    Memory is shared with arrays that can be written to, and copied from others.

    Raises:
        BackendError: a part is absent, or of another dtype or shape.

    """
    require_parts(scheme, parts, shape)
    roles = [role for role, _, _ in scheme.parts(shape) if role in parts]
    tensors = {role: tensor_of(parts[role]) for role in roles}
    return QuantizedWeight(scheme, shape, tensors)


def load_weight(source: WeightSource, name: str) -> QuantizedWeight:
    """Read one quantized weight from `source`, on the CPU.

    Raises:
        BackendError: its stored parts do not fit its scheme and shape.

    """
    scheme, shape = source.weight(name)
    return weight_from_parts(scheme, shape, source.stored(name))


def tensor_of(stored: Stored) -> Tensor:
    """View a stored tensor in torch; unsigned words become signed of the same bits.

    Raises:
        BackendError: torch has no such dtype.

    """
    name = DTYPES[stored.dtype].torch
    array = np.require(stored.array, requirements=["C", "W"])
    if stored.dtype in SIGNED:
        return torch.from_numpy(array.view(SIGNED[stored.dtype]))
    dtype = getattr(torch, name or "", None)
    if dtype is None:
        raise BackendError(f"torch {torch.__version__} has no dtype for {stored.dtype}")
    if DTYPES[stored.dtype].numpy:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"<i{array.itemsize}")).view(dtype)
